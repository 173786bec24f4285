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
