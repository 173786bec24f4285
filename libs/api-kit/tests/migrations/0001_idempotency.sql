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
