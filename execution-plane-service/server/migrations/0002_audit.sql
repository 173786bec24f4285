-- Every command, allowed or refused: who, what, on what, with which result, from where. Append only.
CREATE TABLE audit (
    id              uuid NOT NULL,
    organization_id uuid NOT NULL,
    at              timestamptz NOT NULL DEFAULT now(),
    actor           text NOT NULL,
    action          text NOT NULL,
    subject         text NOT NULL,
    allowed         boolean NOT NULL,
    result          text NOT NULL,
    reason          text NOT NULL,
    remote_address  text NOT NULL,
    detail          json NOT NULL,
    PRIMARY KEY (organization_id, id)
);
ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON audit USING (organization_id = current_setting('app.organization_id', true)::uuid);
DO $$
DECLARE
    service text := regexp_replace(current_user, '_owner$', '');
BEGIN
    EXECUTE format('GRANT SELECT, INSERT ON audit TO %I, %I', service || '_api', service || '_worker');
END
$$;

-- The chain over the facts of `audit`: after its commit each gets a sequence number, without gaps in its organization,
-- and a hash over itself and the hash before it. Nobody but the owner may change what is chained.

-- Facts that are not chained yet, in the order in which they were written.
CREATE TABLE audit_unchained (
    position        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id uuid NOT NULL,
    fact_id         uuid NOT NULL
);

CREATE TABLE audit_chain (
    organization_id uuid NOT NULL,
    sequence        bigint NOT NULL CHECK (sequence > 0),
    fact_id         uuid NOT NULL,
    chained_at      timestamptz NOT NULL,
    previous_hash   bytea CHECK ((previous_hash IS NULL) = (sequence = 1)),
    hash            bytea NOT NULL CHECK (octet_length(hash) = 32),
    PRIMARY KEY (organization_id, sequence),
    CONSTRAINT audit_chain_once UNIQUE (organization_id, fact_id)
);

-- Where each chain ends: what was cut off its end is missed.
CREATE TABLE audit_heads (
    organization_id uuid PRIMARY KEY,
    sequence        bigint NOT NULL,
    hash            bytea NOT NULL
);

-- By trigger, so that no writer can forget it, also one of an older version.
CREATE FUNCTION audit_await_chain() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO audit_unchained (organization_id, fact_id) SELECT organization_id, id FROM added;
    RETURN NULL;
END
$$;
CREATE TRIGGER audit_await_chain AFTER INSERT ON audit REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION audit_await_chain();

DO $$
DECLARE
    api text := regexp_replace(current_user, '_owner$', '') || '_api';
    worker text := regexp_replace(current_user, '_owner$', '') || '_worker';
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['audit_unchained', 'audit_chain', 'audit_heads']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY organization ON %I USING (organization_id = '
            'current_setting(''app.organization_id'', true)::uuid)', name);
        EXECUTE format('CREATE POLICY carry ON %I TO %I USING (true)', name, worker);
        EXECUTE format('GRANT SELECT ON %I TO %I, %I', name, api, worker);
    END LOOP;
    EXECUTE format('CREATE POLICY carry ON audit FOR SELECT TO %I USING (true)', worker);
    EXECUTE format('GRANT DELETE ON audit_unchained TO %I', worker);
    EXECUTE format('GRANT INSERT ON audit_chain TO %I', worker);
    EXECUTE format('GRANT INSERT, UPDATE ON audit_heads TO %I', worker);
    REVOKE ALL ON FUNCTION audit_await_chain FROM PUBLIC;
END
$$;
