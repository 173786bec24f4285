INSERT INTO projected_edges (organization_id, source, edge_type, target)
SELECT $1, r.resource_id, e.edge_type, e.target
FROM json_to_recordset($2::json) AS r (resource_id text, deleted boolean, edges json),
     json_to_recordset(r.edges) AS e (edge_type text, target text)
WHERE NOT r.deleted AND r.resource_id = ANY($3)
ON CONFLICT DO NOTHING
