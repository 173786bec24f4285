-- The catalog: what exists, what it is, how it hangs together, what it can do.
-- Every table forces row-level security; the api role sees one organization a transaction.

-- Bumped by every change of an organization's resource types or capability definitions, so that a process
-- knows by one small read whether what it has resolved still holds. Its row is their lock as well.
CREATE TABLE registries (
    organization_id uuid PRIMARY KEY,
    revision bigint NOT NULL
);

CREATE TABLE resource_types (
    organization_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    -- As it was given; what it amounts to with its parents is resolved in memory.
    definition jsonb NOT NULL,
    version bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, name)
);

CREATE TABLE capability_definitions (
    organization_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    definition jsonb NOT NULL,
    version bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, name)
);

-- One row is a whole resource, so that a read is one row. Updates of observed columns stay on the page
-- (no index covers them).
CREATE TABLE resources (
    organization_id uuid NOT NULL,
    resource_id text COLLATE "C" NOT NULL,
    uid uuid NOT NULL,
    resource_type text COLLATE "C" NOT NULL,
    -- Nearest first. The parent of a type is fixed, so these are too.
    type_ancestors text[] NOT NULL,
    environment text COLLATE "C",
    labels jsonb NOT NULL,
    annotations jsonb NOT NULL,
    lifecycle_status text NOT NULL,
    health_status text NOT NULL,
    health_reasons text[] NOT NULL,
    health_observed_at timestamptz,
    desired_state jsonb NOT NULL,
    observed_state jsonb NOT NULL,
    connection jsonb NOT NULL,
    version bigint NOT NULL CHECK (version > 0),
    desired_generation bigint NOT NULL CHECK (desired_generation > 0),
    -- The same facts as in provided_capabilities and edges, which are there to be searched.
    provided jsonb NOT NULL,
    edges jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, resource_id),
    CONSTRAINT resources_uid UNIQUE (organization_id, uid)
) WITH (fillfactor = 80);
CREATE INDEX resources_by_type ON resources (organization_id, resource_type, resource_id);
CREATE INDEX resources_by_environment ON resources (organization_id, environment, resource_id);
CREATE INDEX resources_labels ON resources USING gin (labels jsonb_path_ops);

-- Who made each version, and what it changed. The key is the proof that a version has one change record.
CREATE TABLE resource_versions (
    organization_id uuid NOT NULL,
    uid uuid NOT NULL,
    version bigint NOT NULL,
    -- JSON Pointers into the resource.
    changed text[] NOT NULL,
    actor text NOT NULL,
    command_id uuid,
    occurred_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, uid, version)
);

-- A capability a row, parents included, for selection.
CREATE TABLE provided_capabilities (
    organization_id uuid NOT NULL,
    capability text COLLATE "C" NOT NULL,
    resource_id text COLLATE "C" NOT NULL,
    -- The provided capability that this follows from: itself, or a child.
    provided_as text COLLATE "C" NOT NULL,
    -- Its attribute `version` as given; '' when it states none.
    version_text text COLLATE "C" NOT NULL,
    PRIMARY KEY (organization_id, capability, resource_id, provided_as)
);
CREATE INDEX provided_capabilities_by_resource ON provided_capabilities (organization_id, resource_id);
CREATE INDEX provided_capabilities_by_version ON provided_capabilities (organization_id, capability, version_text);

CREATE TABLE edges (
    organization_id uuid NOT NULL,
    source text COLLATE "C" NOT NULL,
    edge_type text NOT NULL,
    target text COLLATE "C" NOT NULL,
    source_type text COLLATE "C" NOT NULL,
    PRIMARY KEY (organization_id, source, edge_type, target),
    CONSTRAINT edges_source FOREIGN KEY (organization_id, source) REFERENCES resources (organization_id, resource_id),
    CONSTRAINT edges_target FOREIGN KEY (organization_id, target) REFERENCES resources (organization_id, resource_id)
);
CREATE INDEX edges_by_target ON edges (organization_id, target, edge_type);

-- First outcomes of resource update commands, kept for ever.
CREATE TABLE resource_update_commands (
    organization_id uuid NOT NULL,
    command_id uuid NOT NULL,
    body_digest bytea NOT NULL,
    outcome jsonb NOT NULL,
    decided_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, command_id)
);

-- What an operation must let go of before a resource may go. Setting one bumps no version.
CREATE TABLE finalizers (
    organization_id uuid NOT NULL,
    uid uuid NOT NULL,
    operation_id uuid NOT NULL,
    set_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, uid, operation_id),
    CONSTRAINT finalizers_uid FOREIGN KEY (organization_id, uid) REFERENCES resources (organization_id, uid)
);
CREATE INDEX finalizers_by_operation ON finalizers (organization_id, operation_id);

DO $$
DECLARE
    tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY[
        'registries', 'resource_types', 'capability_definitions', 'resources', 'resource_versions',
        'provided_capabilities', 'edges', 'resource_update_commands', 'finalizers'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format(
            'CREATE POLICY own ON %I USING (organization_id = current_setting(''app.organization_id'', true)::uuid)',
            tenant_table
        );
    END LOOP;
END
$$;
GRANT SELECT, INSERT, UPDATE ON registries, resource_types, capability_definitions, resources TO resource_catalog_api;
GRANT SELECT, INSERT ON resource_versions, resource_update_commands TO resource_catalog_api;
GRANT SELECT, INSERT, DELETE ON provided_capabilities, edges, finalizers TO resource_catalog_api;

-- Keys of idempotent writes with the first outcome of each, kept for seven days.
-- Copied into a service's first migration as it is: the grants find the service's roles by the
-- owner who runs it.
CREATE TABLE idempotency_keys (
    organization_id uuid NOT NULL,
    operation text NOT NULL,
    key text NOT NULL,
    request_digest bytea NOT NULL,
    status smallint,
    body text NOT NULL DEFAULT '',
    version bigint,
    location text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, operation, key)
);
CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);
ALTER TABLE idempotency_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE idempotency_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON idempotency_keys
    USING (organization_id = current_setting('app.organization_id', true)::uuid);
DO $$
DECLARE
    service text := regexp_replace(current_user, '_owner$', '');
BEGIN
    EXECUTE format('CREATE POLICY reap_old ON idempotency_keys FOR DELETE TO %I USING (created_at < now() - interval ''7 days'')', service || '_worker');
    EXECUTE format('CREATE POLICY look_old ON idempotency_keys FOR SELECT TO %I USING (created_at < now() - interval ''7 days'')', service || '_worker');
    EXECUTE format('GRANT SELECT, INSERT, UPDATE ON idempotency_keys TO %I', service || '_api');
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys TO %I', service || '_worker');
END
$$;

-- The outbox (what was changed, written with the change), the feed (the same in its final order)
-- and the state of the sequencer that carries the one to the other.
-- Copied into a service's first migration as it is: the grants find the service's roles by the
-- owner who runs it.

-- Rows live here only until the sequencer has given them a position.
CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id uuid NOT NULL,
    key text NOT NULL,
    version bigint NOT NULL,
    kind text NOT NULL,
    event_id uuid NOT NULL,
    payload text NOT NULL,
    occurred_at timestamptz NOT NULL,
    traceparent text
);

-- Rows that could not be given a position, with the reason, for a person to look at.
CREATE TABLE outbox_parked (
    id bigint PRIMARY KEY,
    organization_id uuid NOT NULL,
    key text NOT NULL,
    version bigint NOT NULL,
    kind text NOT NULL,
    event_id uuid NOT NULL,
    payload text NOT NULL,
    occurred_at timestamptz NOT NULL,
    traceparent text,
    parked_at timestamptz NOT NULL DEFAULT now(),
    reason text NOT NULL
);

-- Append-only, in the order that every reader sees. Revisions have no gap.
CREATE TABLE feed (
    revision bigint PRIMARY KEY,
    organization_id uuid NOT NULL,
    key text NOT NULL,
    version bigint NOT NULL,
    kind text NOT NULL,
    event_id uuid NOT NULL,
    payload text NOT NULL
        CONSTRAINT feed_payload_is_json CHECK (payload::json IS NOT NULL)
        CONSTRAINT feed_payload_size CHECK (octet_length(payload) <= 786432),
    occurred_at timestamptz NOT NULL,
    traceparent text,
    sequenced_at timestamptz NOT NULL DEFAULT now()
) PARTITION BY RANGE (revision);
CREATE INDEX feed_organization_revision ON feed (organization_id, revision);

-- The feed's partitions: `first` up to, not including, `next`. What is old goes as a whole partition.
CREATE TABLE feed_partitions (
    first bigint PRIMARY KEY,
    next bigint NOT NULL UNIQUE,
    filled_at timestamptz,
    CHECK (next > first)
);

-- One row: the last position given, the last position reaped, the epoch of the only sequencer that
-- may write, and how many positions the next partition is to have.
CREATE TABLE feed_state (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    head bigint NOT NULL DEFAULT 0,
    floor bigint NOT NULL DEFAULT 0,
    epoch bigint NOT NULL DEFAULT 0,
    partition_rows bigint NOT NULL DEFAULT 262144 CHECK (partition_rows > 0),
    CHECK (floor <= head)
);
INSERT INTO feed_state DEFAULT VALUES;

-- How far each known reader has come; nothing that one of them still needs is reaped.
CREATE TABLE feed_consumers (
    name text PRIMARY KEY,
    acknowledged bigint NOT NULL,
    acknowledged_at timestamptz NOT NULL DEFAULT now()
);

-- Makes partitions until `revision` has one; returns the first revision that has none. As owner,
-- because only an owner may. Attaching lets readers and writers go on.
CREATE FUNCTION feed_extend(revision bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    size bigint;
    ends bigint;
    partition text;
BEGIN
    SELECT partition_rows INTO size FROM feed_state FOR UPDATE;
    SELECT coalesce(max(next), 1) INTO ends FROM feed_partitions;
    WHILE ends <= revision LOOP
        partition := 'feed_' || ends;
        EXECUTE format('CREATE TABLE %I (LIKE feed INCLUDING ALL)', partition);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', partition);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', partition);
        EXECUTE format('ALTER TABLE feed ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', partition, ends, ends + size);
        INSERT INTO feed_partitions (first, next) VALUES (ends, ends + size);
        ends := ends + size;
    END LOOP;
    RETURN ends;
END
$$;

-- Drops the lowest partitions, while they have been full for longer than `age` and every known
-- consumer has all of them; returns how many went. The floor moves with them, so a reader that is too
-- far behind is told, never silently skipped. Gives up rather than hold readers up.
CREATE FUNCTION feed_reap(age interval) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '500ms' AS $$
DECLARE
    dropped bigint := 0;
    oldest feed_partitions;
BEGIN
    UPDATE feed_partitions SET filled_at = now()
    WHERE filled_at IS NULL AND next <= (SELECT head + 1 FROM feed_state);
    LOOP
        SELECT * INTO oldest FROM feed_partitions ORDER BY first LIMIT 1;
        EXIT WHEN oldest.filled_at IS NULL OR oldest.filled_at > now() - age
            OR EXISTS (SELECT FROM feed_consumers WHERE acknowledged < oldest.next - 1);
        UPDATE feed_state SET floor = oldest.next - 1;
        EXECUTE format('DROP TABLE %I', 'feed_' || oldest.first);
        DELETE FROM feed_partitions WHERE first = oldest.first;
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END
$$;

ALTER TABLE outbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE outbox FORCE ROW LEVEL SECURITY;
ALTER TABLE outbox_parked ENABLE ROW LEVEL SECURITY;
ALTER TABLE outbox_parked FORCE ROW LEVEL SECURITY;
ALTER TABLE feed ENABLE ROW LEVEL SECURITY;
ALTER TABLE feed FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON outbox USING (organization_id = current_setting('app.organization_id', true)::uuid);
CREATE POLICY own ON outbox_parked USING (organization_id = current_setting('app.organization_id', true)::uuid);
CREATE POLICY own ON feed USING (organization_id = current_setting('app.organization_id', true)::uuid);

DO $$
DECLARE
    api text := regexp_replace(current_user, '_owner$', '') || '_api';
    worker text := regexp_replace(current_user, '_owner$', '') || '_worker';
BEGIN
    EXECUTE format('CREATE POLICY carry ON outbox TO %I USING (true)', worker);
    EXECUTE format('CREATE POLICY carry ON outbox_parked TO %I USING (true)', worker);
    EXECUTE format('CREATE POLICY carry ON feed TO %I USING (true)', worker);
    EXECUTE format('GRANT INSERT ON outbox TO %I, %I', api, worker);
    EXECUTE format('GRANT SELECT, DELETE ON outbox TO %I', worker);
    EXECUTE format('GRANT SELECT, INSERT, DELETE ON outbox_parked TO %I', worker);
    EXECUTE format('GRANT SELECT ON feed, feed_state TO %I, %I', api, worker);
    EXECUTE format('GRANT INSERT ON feed TO %I', worker);
    EXECUTE format('GRANT SELECT ON feed_partitions TO %I', worker);
    REVOKE ALL ON FUNCTION feed_extend, feed_reap FROM PUBLIC;
    EXECUTE format('GRANT EXECUTE ON FUNCTION feed_extend, feed_reap TO %I', worker);
    EXECUTE format('GRANT UPDATE ON feed_state TO %I', worker);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE ON feed_consumers TO %I', api);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON feed_consumers TO %I', worker);
END
$$;
