-- Attempts, leases, results, output, and what jobs refer to. Every table belongs to an organization
-- and forces row-level security; the worker role sees other organizations' rows only where work has
-- to be found: leases that may be overdue, and outputs that may be compacted.

-- A runner: who takes work. The same name is the same runner over restarts; each start is a session.
CREATE TABLE runners (
    organization_id  uuid        NOT NULL,
    runner_id        uuid        NOT NULL,
    name             text        NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    pools            text[]      NOT NULL,
    labels           jsonb       NOT NULL,
    job_types        text[]      NOT NULL,
    -- Grades by rank: 0 process, 1 sandbox, 2 container.
    isolation        smallint[]  NOT NULL,
    capacity         integer     NOT NULL CHECK (capacity BETWEEN 1 AND 10000),
    -- Empty serves all.
    environments     text[]      NOT NULL,
    software_version text,
    draining         boolean     NOT NULL DEFAULT false,
    session          bigint      NOT NULL CHECK (session >= 1),
    -- The life of the process that the session belongs to.
    instance         uuid        NOT NULL,
    version          bigint      NOT NULL CHECK (version >= 1),
    registered_at    timestamptz NOT NULL DEFAULT now(),
    last_seen_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, runner_id),
    CONSTRAINT runners_name UNIQUE (organization_id, name)
);

-- An attempt: what was asked (the spec, as the canonical bytes it was accepted with) and where it
-- stands. Keyed by organization first: the same id in two organizations is two attempts, so that
-- neither learns of the other.
CREATE TABLE attempts (
    organization_id     uuid        NOT NULL,
    attempt_id          uuid        NOT NULL,
    operation_id        uuid        NOT NULL,
    plan_node_id        text        NOT NULL,
    job_type            text        NOT NULL,
    environment         text        NOT NULL,
    runner_name         text        NOT NULL,
    runner_labels       jsonb       NOT NULL,
    isolation           smallint    NOT NULL,
    spec                text        NOT NULL,
    spec_sha256         bytea       NOT NULL,
    policy_name         text,
    policy_version      bigint,
    content_bytes       bigint,
    state               text        NOT NULL CHECK (state IN ('queued', 'leased', 'starting', 'running', 'cancelling',
                                        'succeeded', 'failed', 'cancelled', 'timed_out', 'lost')),
    version             bigint      NOT NULL DEFAULT 1,
    -- 0 until it is granted; granted once, ever.
    epoch               bigint      NOT NULL DEFAULT 0,
    -- The runner told that the job's process ran.
    ran                 boolean     NOT NULL DEFAULT false,
    runner_id           uuid,
    isolation_used      smallint,
    queue_position      bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    queued_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    leased_at           timestamptz,
    started_at          timestamptz,
    finished_at         timestamptz,
    cancel_requested_at timestamptz,
    cancel_reason       text,
    reason              text,
    PRIMARY KEY (organization_id, attempt_id),
    CONSTRAINT attempts_granted CHECK ((epoch = 0) = (runner_id IS NULL)),
    CONSTRAINT attempts_ended CHECK ((state IN ('succeeded', 'failed', 'cancelled', 'timed_out', 'lost'))
        = (finished_at IS NOT NULL))
);
CREATE INDEX attempts_queue ON attempts (organization_id, queue_position) WHERE state = 'queued';
CREATE INDEX attempts_operation ON attempts (organization_id, operation_id, attempt_id);

-- A live lease; gone when the attempt ends. Small and apart from attempts, because renewals rewrite it.
CREATE TABLE leases (
    organization_id  uuid        NOT NULL,
    attempt_id       uuid        NOT NULL,
    runner_id        uuid        NOT NULL,
    session          bigint      NOT NULL,
    epoch            bigint      NOT NULL,
    deadline_at      timestamptz NOT NULL,
    cancel_requested boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (organization_id, attempt_id),
    FOREIGN KEY (organization_id, attempt_id) REFERENCES attempts
) WITH (fillfactor = 50);
CREATE INDEX leases_runner ON leases (organization_id, runner_id);

-- The result of a finished attempt, from the transaction that finished it, until acknowledged and after.
CREATE TABLE results (
    organization_id uuid        NOT NULL,
    attempt_id      uuid        NOT NULL,
    position        bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    body            text        NOT NULL,
    -- Of the runner's report, to know a repeat; null when the service itself ended the attempt.
    report_sha256   bytea,
    acknowledged_at timestamptz,
    PRIMARY KEY (organization_id, attempt_id),
    FOREIGN KEY (organization_id, attempt_id) REFERENCES attempts
);
CREATE INDEX results_unacknowledged ON results (organization_id, position) WHERE acknowledged_at IS NULL;

-- Output as it came, one row a call of the runner. `data` is emptied once the log bundle holds it.
CREATE TABLE output_segments (
    organization_id uuid   NOT NULL,
    attempt_id      uuid   NOT NULL,
    first_sequence  bigint NOT NULL CHECK (first_sequence >= 1),
    last_sequence   bigint NOT NULL,
    byte_offset     bigint NOT NULL CHECK (byte_offset >= 0),
    byte_length     bigint NOT NULL CHECK (byte_length >= 0),
    -- [[stream, microseconds since the epoch, length], ...]
    chunks          jsonb  NOT NULL,
    data            bytea,
    PRIMARY KEY (organization_id, attempt_id, first_sequence),
    CHECK (last_sequence >= first_sequence),
    FOREIGN KEY (organization_id, attempt_id) REFERENCES attempts
);
ALTER TABLE output_segments ALTER COLUMN data SET STORAGE EXTERNAL;

-- The finished log of an attempt: one blob, the raw bytes of all streams in order.
CREATE TABLE log_bundles (
    organization_id uuid   NOT NULL,
    attempt_id      uuid   NOT NULL,
    log_id          uuid   NOT NULL,
    uri             text   NOT NULL,
    sha256          bytea  NOT NULL,
    size_bytes      bigint NOT NULL,
    lines           bigint NOT NULL,
    PRIMARY KEY (organization_id, attempt_id),
    FOREIGN KEY (organization_id, attempt_id) REFERENCES attempts
);

-- Outputs whose segments still repeat what a bundle holds.
CREATE TABLE output_compactions (
    organization_id uuid NOT NULL,
    attempt_id      uuid NOT NULL,
    PRIMARY KEY (organization_id, attempt_id),
    FOREIGN KEY (organization_id, attempt_id) REFERENCES attempts
);

-- Metadata of artifacts; the bytes are blobs.
CREATE TABLE artifacts (
    organization_id uuid        NOT NULL,
    attempt_id      uuid        NOT NULL,
    name            text        NOT NULL,
    artifact_id     uuid        NOT NULL,
    operation_id    uuid        NOT NULL,
    plan_node_id    text        NOT NULL,
    artifact_type   text        NOT NULL,
    sensitivity     text        NOT NULL CHECK (sensitivity IN ('public', 'internal')),
    uri             text        NOT NULL,
    sha256          bytea       NOT NULL,
    size_bytes      bigint      NOT NULL,
    media_type      text,
    recorded_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (organization_id, attempt_id, name),
    FOREIGN KEY (organization_id, attempt_id) REFERENCES attempts
);
CREATE INDEX artifacts_operation ON artifacts (organization_id, operation_id, name, recorded_at DESC);

-- Bundles that the organization uploaded.
CREATE TABLE contents (
    organization_id uuid        NOT NULL,
    sha256          bytea       NOT NULL,
    size_bytes      bigint      NOT NULL,
    stored_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, sha256)
);

-- Every version of every command policy.
CREATE TABLE command_policies (
    organization_id uuid        NOT NULL,
    name            text        NOT NULL,
    version         bigint      NOT NULL CHECK (version >= 1),
    body            jsonb       NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, name, version)
);

DO $$
DECLARE
    relation text;
BEGIN
    FOREACH relation IN ARRAY ARRAY['runners', 'attempts', 'leases', 'results', 'output_segments', 'log_bundles',
        'output_compactions', 'artifacts', 'contents', 'command_policies']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', relation);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', relation);
        EXECUTE format('CREATE POLICY organization ON %I
            USING (organization_id = current_setting(''app.organization_id'', true)::uuid)', relation);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE ON %I TO execution_plane_api, execution_plane_worker', relation);
    END LOOP;
END
$$;

GRANT DELETE ON leases TO execution_plane_api, execution_plane_worker;
GRANT DELETE ON output_compactions TO execution_plane_worker;
CREATE POLICY every_organization ON leases FOR SELECT TO execution_plane_worker USING (true);
CREATE POLICY every_organization ON output_compactions FOR SELECT TO execution_plane_worker USING (true);

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
