SELECT resource_id, uid, types, environment, lifecycle, health, body AS "body: Value"
FROM projected_resources
WHERE NOT deleted
  AND types @> ARRAY[$1::text]
  AND environment = $2
  AND lifecycle = ANY($3)
  AND (cardinality($4::text[]) = 0 OR health = ANY($4))
  AND (NOT $5::boolean OR reachable)
  AND capabilities @> $6
ORDER BY resource_id
LIMIT $7
