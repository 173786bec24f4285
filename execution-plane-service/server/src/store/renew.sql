WITH own AS (
    SELECT attempt_id
    FROM leases
    WHERE organization_id = $1 AND runner_id = $2 AND session = $3 AND attempt_id = ANY ($4::uuid[])
    ORDER BY attempt_id
    FOR UPDATE
), seen AS (
    UPDATE runners SET last_seen_at = clock_timestamp()
    WHERE organization_id = $1 AND runner_id = $2 AND last_seen_at < clock_timestamp() - interval '1 second'
)
UPDATE leases AS l
SET deadline_at = clock_timestamp() + make_interval(secs => $5)
FROM own
WHERE l.organization_id = $1 AND l.attempt_id = own.attempt_id
RETURNING l.attempt_id, l.epoch, l.cancel_requested
