-- Numbers over all organizations, for whoever watches over the service. The worker role gets these and sees no row: the
-- function runs as the owner, who serves nobody, and whom a policy lets read what is counted.

CREATE POLICY figures ON attempts FOR SELECT TO execution_plane_owner USING (true);
CREATE POLICY figures ON leases FOR SELECT TO execution_plane_owner USING (true);
CREATE POLICY figures ON results FOR SELECT TO execution_plane_owner USING (true);
CREATE POLICY figures ON runners FOR SELECT TO execution_plane_owner USING (true);

CREATE FUNCTION execution_figures() RETURNS TABLE (name text, value double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT 'queued', count(*)::float8 FROM attempts WHERE state = 'queued'
    UNION ALL
    SELECT a.state, count(*)::float8 FROM leases l JOIN attempts a USING (organization_id, attempt_id) GROUP BY a.state
    UNION ALL
    SELECT 'oldest_queued_seconds', coalesce(extract(epoch FROM clock_timestamp() - min(queued_at)), 0)::float8
    FROM attempts WHERE state = 'queued'
    UNION ALL
    SELECT 'leases_overdue', count(*)::float8 FROM leases WHERE deadline_at < clock_timestamp()
    UNION ALL
    SELECT 'results_unacknowledged', count(*)::float8 FROM results WHERE acknowledged_at IS NULL
    UNION ALL
    SELECT 'oldest_result_seconds', coalesce(extract(epoch FROM clock_timestamp() - min(a.finished_at)), 0)::float8
    FROM results r JOIN attempts a USING (organization_id, attempt_id) WHERE r.acknowledged_at IS NULL
    UNION ALL
    SELECT CASE WHEN draining THEN 'runners_draining' ELSE 'runners_taking' END, count(*)::float8
    FROM runners GROUP BY draining
    UNION ALL
    SELECT 'runners_silent', count(*)::float8 FROM runners WHERE last_seen_at < clock_timestamp() - interval '5 minutes'
$$;
REVOKE ALL ON FUNCTION execution_figures FROM PUBLIC;
GRANT EXECUTE ON FUNCTION execution_figures TO execution_plane_worker;
