WITH next AS (
    SELECT attempt_id
    FROM attempts
    WHERE organization_id = $1 AND state = 'queued'
        AND runner_name = ANY ($2::text[])
        AND job_type = ANY ($3::text[])
        AND isolation <= $4
        AND (cardinality($5::text[]) = 0 OR environment = ANY ($5::text[]))
        AND runner_labels <@ $6::text::jsonb
    ORDER BY queue_position
    LIMIT $7
    FOR NO KEY UPDATE SKIP LOCKED
), granted AS (
    UPDATE attempts AS a
    SET state = 'leased', epoch = a.epoch + 1, version = a.version + 1, runner_id = $8, leased_at = clock_timestamp()
    FROM next AS n
    WHERE a.organization_id = $1 AND a.attempt_id = n.attempt_id AND a.state = 'queued'
    RETURNING a.attempt_id, a.epoch, a.spec, a.content_bytes, a.policy_name, a.policy_version, a.queue_position, a.version, a.leased_at
), recorded AS (
    INSERT INTO leases (organization_id, attempt_id, runner_id, session, epoch, deadline_at)
    SELECT $1, attempt_id, $8, $9, epoch, clock_timestamp() + make_interval(secs => $10)
    FROM granted
)
SELECT g.attempt_id, g.epoch, g.spec, g.content_bytes, g.policy_name, g.policy_version, p.body, false, g.version, g.leased_at
FROM granted AS g
LEFT JOIN command_policies AS p
    ON p.organization_id = $1 AND p.name = g.policy_name AND p.version = g.policy_version
ORDER BY g.queue_position
