WITH renewed AS (
    UPDATE leases
    SET deadline_at = clock_timestamp() + make_interval(secs => $5)
    WHERE organization_id = $1 AND runner_id = $2 AND attempt_id = ANY ($3::uuid[]) AND session = $4
    RETURNING attempt_id, epoch, cancel_requested
)
SELECT a.attempt_id, r.epoch, a.spec, a.content_bytes, a.policy_name, a.policy_version, p.body, r.cancel_requested
FROM renewed AS r
JOIN attempts AS a ON a.organization_id = $1 AND a.attempt_id = r.attempt_id
LEFT JOIN command_policies AS p
    ON p.organization_id = $1 AND p.name = a.policy_name AND p.version = a.policy_version
ORDER BY a.queue_position
