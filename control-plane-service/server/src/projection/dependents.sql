WITH RECURSIVE reached (resource_id, hops) AS (
    SELECT unnest($1::text[]), 0
    UNION
    SELECT e.source, r.hops + 1
    FROM reached r
    JOIN projected_edges e ON e.target = r.resource_id
    WHERE r.hops < 3 AND e.edge_type IN ('hosted_on', 'part_of', 'member_of', 'depends_on')
)
SELECT DISTINCT p.resource_id, p.resource_type
FROM reached r
JOIN projected_resources p ON p.resource_id = r.resource_id AND NOT p.deleted
WHERE NOT r.resource_id = ANY($1)
ORDER BY p.resource_id
LIMIT $2
