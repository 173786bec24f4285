WITH given AS (
    SELECT *
    FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::smallint[],
            $10::text[], $11::bytea[], $12::text[], $13::bigint[], $14::bigint[], $15::text[], $16::bigint[],
            $17::uuid[], $18::bigint[])
        WITH ORDINALITY AS t (attempt_id, operation_id, plan_node_id, job_type, environment, runner_name,
            runner_labels, isolation, spec, spec_sha256, policy_name, policy_version, content_bytes, state, epoch,
            runner_id, session, place)
), new AS (
    INSERT INTO attempts (organization_id, attempt_id, operation_id, plan_node_id, job_type, environment, runner_name,
        runner_labels, isolation, spec, spec_sha256, policy_name, policy_version, content_bytes, state, epoch,
        runner_id, leased_at)
    SELECT $1, attempt_id, operation_id, plan_node_id, job_type, environment, runner_name, runner_labels::jsonb,
        isolation, spec, spec_sha256, policy_name, policy_version, content_bytes, state, epoch, runner_id,
        CASE WHEN runner_id IS NOT NULL THEN clock_timestamp() END
    FROM given
    ORDER BY place
    ON CONFLICT DO NOTHING
    RETURNING attempt_id
), granted AS (
    INSERT INTO leases (organization_id, attempt_id, runner_id, session, epoch, deadline_at)
    SELECT $1, attempt_id, runner_id, session, epoch, clock_timestamp() + make_interval(secs => $19)
    FROM given
    JOIN new USING (attempt_id)
    WHERE runner_id IS NOT NULL
)
SELECT attempt_id FROM new
