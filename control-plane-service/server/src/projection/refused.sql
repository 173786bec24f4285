-- Resources of the slot's type that SQL refuses, each with the first constraint that does: the first ones
-- by id with all that explains them, the others counted.
WITH judged AS (
    SELECT resource_id, uid, types, environment, lifecycle, health, body,
           CASE
               WHEN environment IS DISTINCT FROM $2 THEN 'environment'
               WHEN NOT lifecycle = ANY($3) THEN 'lifecycle'
               WHEN cardinality($4::text[]) > 0 AND NOT health = ANY($4) THEN 'health'
               WHEN $5::boolean AND NOT reachable THEN 'connection'
               ELSE (SELECT wanted.name FROM unnest($6::text[]) WITH ORDINALITY AS wanted (name, rank)
                     WHERE NOT capabilities @> ARRAY[wanted.name] ORDER BY wanted.rank LIMIT 1)
           END AS reason
    FROM projected_resources
    WHERE NOT deleted AND types @> ARRAY[$1::text]
), explained AS (
    SELECT * FROM judged WHERE reason IS NOT NULL ORDER BY resource_id LIMIT $7
), counted AS (
    SELECT reason, count(*) AS count FROM judged WHERE reason IS NOT NULL GROUP BY reason
)
SELECT e.reason AS "reason!", e.resource_id AS "resource_id?", e.uid AS "uid?", e.types AS "types?",
       e.environment AS "environment?", e.lifecycle AS "lifecycle?", e.health AS "health?",
       e.body AS "body?: Value", 1::bigint AS "count!"
FROM explained e
UNION ALL
SELECT c.reason, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       c.count - (SELECT count(*) FROM explained e WHERE e.reason = c.reason)
FROM counted c
WHERE c.count > (SELECT count(*) FROM explained e WHERE e.reason = c.reason)
