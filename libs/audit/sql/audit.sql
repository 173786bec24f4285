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
