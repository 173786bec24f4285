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
);
CREATE INDEX feed_organization_revision ON feed (organization_id, revision);

-- One row: the last position given, the last position reaped, and the epoch of the only sequencer
-- that may write.
CREATE TABLE feed_state (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    head bigint NOT NULL DEFAULT 0,
    floor bigint NOT NULL DEFAULT 0,
    epoch bigint NOT NULL DEFAULT 0,
    CHECK (floor <= head)
);
INSERT INTO feed_state DEFAULT VALUES;

-- How far each known reader has come; nothing that one of them still needs is reaped.
CREATE TABLE feed_consumers (
    name text PRIMARY KEY,
    acknowledged bigint NOT NULL,
    acknowledged_at timestamptz NOT NULL DEFAULT now()
);

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
    EXECUTE format('GRANT INSERT, DELETE ON feed TO %I', worker);
    EXECUTE format('GRANT UPDATE ON feed_state TO %I', worker);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE ON feed_consumers TO %I', api);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON feed_consumers TO %I', worker);
END
$$;
