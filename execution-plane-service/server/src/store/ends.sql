WITH given AS (
    SELECT *
    FROM unnest($2::uuid[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bytea[], $8::uuid[], $9::text[],
            $10::bytea[], $11::bigint[], $12::bigint[])
        AS t (attempt_id, state, epoch, reason, body, report_sha256, log_id, log_uri, log_sha256, log_bytes, log_lines)
), ended AS (
    UPDATE attempts AS a
    SET state = g.state, epoch = g.epoch, reason = g.reason, version = a.version + 1, finished_at = clock_timestamp()
    FROM given AS g
    WHERE a.organization_id = $1 AND a.attempt_id = g.attempt_id
), released AS (
    DELETE FROM leases AS l USING given AS g WHERE l.organization_id = $1 AND l.attempt_id = g.attempt_id
), bundled AS (
    INSERT INTO log_bundles (organization_id, attempt_id, log_id, uri, sha256, size_bytes, lines)
    SELECT $1, attempt_id, log_id, log_uri, log_sha256, log_bytes, log_lines FROM given WHERE log_id IS NOT NULL
), compactable AS (
    INSERT INTO output_compactions (organization_id, attempt_id)
    SELECT $1, attempt_id FROM given WHERE log_id IS NOT NULL
)
INSERT INTO results (organization_id, attempt_id, body, report_sha256)
SELECT $1, attempt_id, body, report_sha256 FROM given
