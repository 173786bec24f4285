WITH given AS (
    SELECT * FROM json_to_recordset($3::json) AS r (
        resource_id text, uid uuid, version bigint, deleted boolean, resource_type text, types json,
        environment text, lifecycle text, health text, capabilities json, reachable boolean, body json)
), written AS (
    INSERT INTO projected_resources AS p (
        organization_id, resource_id, uid, version, generation, deleted, resource_type, types, environment,
        lifecycle, health, capabilities, reachable, body)
    SELECT $1, resource_id, uid, version, $2, deleted, resource_type,
           ARRAY(SELECT json_array_elements_text(types)), environment, lifecycle, health,
           ARRAY(SELECT json_array_elements_text(capabilities)), reachable, body
    FROM given
    ON CONFLICT (organization_id, resource_id) DO UPDATE SET
        uid = excluded.uid, version = excluded.version, generation = excluded.generation,
        deleted = excluded.deleted, resource_type = excluded.resource_type, types = excluded.types,
        environment = excluded.environment, lifecycle = excluded.lifecycle, health = excluded.health,
        capabilities = excluded.capabilities, reachable = excluded.reachable, body = excluded.body
    WHERE p.version < excluded.version OR p.generation < excluded.generation
    RETURNING p.resource_id
)
SELECT resource_id FROM written
