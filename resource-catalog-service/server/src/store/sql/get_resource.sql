SELECT
    organization_id, resource_id, uid, resource_type, type_ancestors, environment, labels, annotations,
    lifecycle_status, health_status, health_reasons, health_observed_at, desired_state, observed_state, connection,
    version, desired_generation, provided, edges, created_at, updated_at
FROM resources
WHERE organization_id = $1 AND resource_id = $2
