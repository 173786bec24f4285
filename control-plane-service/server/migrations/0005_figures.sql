-- Numbers over all organizations, for whoever watches over the service. The worker role gets these and sees no row: the
-- function runs as the owner, who serves nobody, and whom a policy lets read what is counted.

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['operations', 'effects', 'wakeups', 'inbox', 'content_deliveries',
        'projection_cursors', 'parked_resources']
    LOOP
        EXECUTE format('CREATE POLICY figures ON %I FOR SELECT TO control_plane_owner USING (true)', name);
    END LOOP;
END
$$;

CREATE FUNCTION operation_figures() RETURNS TABLE (kind text, name text, value double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT 'operations', status, count(*)::float8 FROM operations WHERE ended_at IS NULL GROUP BY status
    UNION ALL
    SELECT 'effects', dependency, count(*)::float8 FROM effects GROUP BY dependency
    UNION ALL
    SELECT 'one', 'effects_failing', count(*)::float8 FROM effects WHERE failing_since IS NOT NULL
    UNION ALL
    SELECT 'one', 'oldest_effect_seconds', coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8
    FROM effects
    UNION ALL
    SELECT 'one', 'wakeups_overdue_seconds', coalesce(extract(epoch FROM clock_timestamp() - min(due_at)), 0)::float8
    FROM wakeups WHERE due_at < clock_timestamp()
    UNION ALL
    SELECT 'one', 'inbox', count(*)::float8 FROM inbox
    UNION ALL
    SELECT 'one', 'deliveries', count(*)::float8 FROM content_deliveries WHERE delivered_at IS NULL
    UNION ALL
    SELECT 'one', 'projection_behind', coalesce(max(head - revision), 0)::float8 FROM projection_cursors
    UNION ALL
    SELECT 'one', 'projection_behind_seconds',
        coalesce(extract(epoch FROM clock_timestamp() - min(coalesce(applied_at, created_at))), 0)::float8
    FROM projection_cursors WHERE head > revision OR rebuild_asked
    UNION ALL
    SELECT 'one', 'projection_gaps', coalesce(sum(gaps), 0)::float8 FROM projection_cursors
    UNION ALL
    SELECT 'one', 'projection_rebuilds_asked', count(*)::float8 FROM projection_cursors WHERE rebuild_asked
    UNION ALL
    SELECT 'one', 'projection_parked', count(*)::float8 FROM parked_resources
$$;
REVOKE ALL ON FUNCTION operation_figures FROM PUBLIC;
GRANT EXECUTE ON FUNCTION operation_figures TO control_plane_worker;
