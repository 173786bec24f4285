-- Operations: what was asked for, how far it is, and what is still to be done about it.
--
-- One transaction advances an operation; it locks the operation's row first, so rows of one operation
-- are only ever written by one writer. Rows that only the pure domain reads again are kept whole in
-- `body`; columns beside it are what lists and people ask for.

CREATE TABLE operations (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    plan_id         uuid NOT NULL,
    pack            text NOT NULL,
    pack_version    text NOT NULL,
    template        text NOT NULL,
    environment     text NOT NULL,
    requester       text NOT NULL,
    reason          text NOT NULL,
    labels          jsonb NOT NULL,
    status          text NOT NULL,
    run             integer NOT NULL,
    plan_revision   integer NOT NULL,
    revision        bigint NOT NULL,
    last_event      bigint NOT NULL,
    last_event_at   timestamptz NOT NULL,
    progress        json NOT NULL,
    created_at      timestamptz NOT NULL,
    ended_at        timestamptz,
    CONSTRAINT operations_plan_carried_out_once UNIQUE (organization_id, plan_id)
) WITH (fillfactor = 60);
CREATE INDEX operations_newest ON operations (organization_id, id DESC);
CREATE INDEX operations_open ON operations (organization_id) WHERE ended_at IS NULL;

-- The plan of each revision, in the bytes that were digested. Never changed, never deleted: an operation
-- is explained from here even when its pack and its preview are gone.
CREATE TABLE plan_revisions (
    operation_id    uuid NOT NULL REFERENCES operations (id),
    revision        integer NOT NULL,
    organization_id uuid NOT NULL,
    plan_id         uuid NOT NULL,
    digest          bytea NOT NULL CHECK (octet_length(digest) = 32),
    scenario        json NOT NULL,
    document        bytea NOT NULL,
    PRIMARY KEY (operation_id, revision)
);

CREATE TABLE operation_runs (
    operation_id    uuid NOT NULL REFERENCES operations (id),
    number          integer NOT NULL,
    organization_id uuid NOT NULL,
    body            json NOT NULL,
    PRIMARY KEY (operation_id, number)
);

CREATE TABLE node_runs (
    operation_id    uuid NOT NULL,
    run             integer NOT NULL,
    node            text NOT NULL,
    organization_id uuid NOT NULL,
    state           text NOT NULL,
    body            json NOT NULL,
    PRIMARY KEY (operation_id, node, run)
) WITH (fillfactor = 70);

CREATE TABLE attempts (
    id              uuid PRIMARY KEY,
    operation_id    uuid NOT NULL,
    organization_id uuid NOT NULL,
    node            text NOT NULL,
    run             integer NOT NULL,
    number          integer NOT NULL,
    state           text NOT NULL,
    body            json NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX attempts_of_operation ON attempts (operation_id, node, run, number);

CREATE TABLE gates (
    id              uuid PRIMARY KEY,
    operation_id    uuid NOT NULL REFERENCES operations (id),
    organization_id uuid NOT NULL,
    node            text NOT NULL,
    state           text NOT NULL,
    opened_at       timestamptz NOT NULL,
    body            json NOT NULL
);
CREATE INDEX gates_of_operation ON gates (operation_id, opened_at);

CREATE TABLE resource_updates (
    command_id      uuid PRIMARY KEY,
    operation_id    uuid NOT NULL,
    organization_id uuid NOT NULL,
    node            text NOT NULL,
    state           text NOT NULL,
    body            json NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX resource_updates_of_operation ON resource_updates (operation_id);

-- Bound resources as the catalog last confirmed them to the operation.
CREATE TABLE operation_bindings (
    operation_id    uuid NOT NULL,
    slot            text NOT NULL,
    uid             uuid NOT NULL,
    organization_id uuid NOT NULL,
    body            json NOT NULL,
    PRIMARY KEY (operation_id, slot, uid)
);

-- The answer to every command, for ever: a repeat gets the first one.
CREATE TABLE interventions (
    operation_id    uuid NOT NULL REFERENCES operations (id),
    id              uuid NOT NULL,
    organization_id uuid NOT NULL,
    at              timestamptz NOT NULL,
    request_digest  bytea NOT NULL,
    body            json NOT NULL,
    PRIMARY KEY (operation_id, id)
);

CREATE TABLE operation_events (
    operation_id    uuid NOT NULL,
    sequence        bigint NOT NULL,
    organization_id uuid NOT NULL,
    at              timestamptz NOT NULL,
    type            text NOT NULL,
    body            json NOT NULL,
    PRIMARY KEY (operation_id, sequence)
);

-- Claims, held and queued. Written only by the transaction that moves their operation, so none can
-- outlive its run. A ticket orders the queue of every resource alike, which is what rules out deadlock.
CREATE SEQUENCE claim_tickets;
CREATE TABLE claims (
    request_id      uuid NOT NULL,
    uid             uuid NOT NULL,
    organization_id uuid NOT NULL,
    operation_id    uuid NOT NULL,
    run             integer NOT NULL,
    resource_id     text NOT NULL,
    mode            text NOT NULL CHECK (mode IN ('exclusive', 'shared', 'read')),
    held            boolean NOT NULL,
    ticket          bigint NOT NULL,
    since           timestamptz NOT NULL,
    PRIMARY KEY (request_id, uid)
);
CREATE INDEX claims_of_resource ON claims (uid, ticket);
CREATE INDEX claims_of_operation ON claims (operation_id);

-- What an operation was told and has not yet drained. A row here is a wake-up.
CREATE TABLE inbox (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id uuid NOT NULL,
    operation_id    uuid NOT NULL,
    body            json NOT NULL,
    told_at         timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX inbox_of_operation ON inbox (operation_id, id);

-- What is to be done in the world. A row is deleted once it is done; until then it says who does not answer.
CREATE TABLE effects (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    operation_id    uuid NOT NULL,
    subject         uuid NOT NULL,
    dependency      text NOT NULL,
    body            json NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    retry_at        timestamptz NOT NULL,
    tries           integer NOT NULL DEFAULT 0,
    failing_since   timestamptz,
    last_error      text
) WITH (fillfactor = 70);
CREATE INDEX effects_of_operation ON effects (operation_id, id);
CREATE INDEX effects_overdue ON effects (retry_at);

-- When an open operation wants to be asked again. Permanent while it is open, in every runtime.
CREATE TABLE wakeups (
    operation_id    uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    due_at          timestamptz,
    claims          integer NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX wakeups_due ON wakeups (due_at) WHERE due_at IS NOT NULL;

-- Organizations that ever had an operation: someone listens for their results. Seen by the worker role.
CREATE TABLE result_channels (
    organization_id uuid PRIMARY KEY
);

-- Every command, allowed or refused: who, what, on what, with which result. Append only.
CREATE TABLE audit (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    at              timestamptz NOT NULL DEFAULT now(),
    actor           text NOT NULL,
    action          text NOT NULL,
    subject         text NOT NULL,
    allowed         boolean NOT NULL,
    result          text NOT NULL,
    reason          text NOT NULL,
    detail          json NOT NULL
);
CREATE INDEX audit_in_order ON audit (organization_id, id);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['operations', 'plan_revisions', 'operation_runs', 'node_runs', 'attempts', 'gates',
        'resource_updates', 'operation_bindings', 'interventions', 'operation_events', 'claims', 'inbox', 'effects',
        'wakeups', 'result_channels']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY organization ON %I USING (organization_id = '
            'current_setting(''app.organization_id'', true)::uuid)', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO control_plane_api, control_plane_worker', name);
    END LOOP;
    -- The worker finds work of all organizations here, and names one before it touches anything else.
    FOREACH name IN ARRAY ARRAY['inbox', 'effects', 'wakeups', 'result_channels']
    LOOP
        EXECUTE format('CREATE POLICY worker ON %I TO control_plane_worker USING (true)', name);
    END LOOP;
END
$$;
ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON audit USING (organization_id = current_setting('app.organization_id', true)::uuid);
GRANT SELECT, INSERT ON audit TO control_plane_api, control_plane_worker;
GRANT USAGE ON SEQUENCE claim_tickets TO control_plane_api, control_plane_worker;

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
