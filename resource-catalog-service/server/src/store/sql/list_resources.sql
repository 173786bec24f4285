-- One page by id. Each condition is left out when its parameter is null. Equalities of labels ($7) use the index;
-- the other terms of a selector ($8) are held against each row that is left.
SELECT
    organization_id, resource_id, uid, resource_type, type_ancestors, environment, labels, annotations,
    lifecycle_status, health_status, health_reasons, health_observed_at, desired_state, observed_state, connection,
    version, desired_generation, provided, edges, created_at, updated_at
FROM resources AS r
WHERE organization_id = $1
    AND ($2::text IS NULL OR resource_id > $2)
    AND ($3::text[] IS NULL OR resource_type = ANY ($3))
    AND ($4::text IS NULL OR environment = $4)
    AND ($5::text IS NULL OR lifecycle_status = $5)
    AND ($6::text IS NULL OR health_status = $6)
    AND ($7::jsonb IS NULL OR labels @> $7)
    AND ($8::jsonb IS NULL OR NOT EXISTS (
        SELECT 1
        FROM jsonb_array_elements($8) AS term
        WHERE NOT CASE term ->> 'op'
            WHEN 'in' THEN coalesce(jsonb_exists(term -> 'values', labels ->> (term ->> 'key')), false)
            WHEN 'not_in' THEN NOT coalesce(jsonb_exists(term -> 'values', labels ->> (term ->> 'key')), false)
            WHEN 'exists' THEN jsonb_exists(labels, term ->> 'key')
            ELSE NOT jsonb_exists(labels, term ->> 'key')
        END
    ))
    -- A scalar lookup, one index step for each row that is left: an EXISTS here would be hashed over every provider.
    AND ($9::text IS NULL OR coalesce((
        SELECT true
        FROM provided_capabilities AS p
        WHERE p.organization_id = r.organization_id
            AND p.resource_id = r.resource_id
            AND p.capability = $9
            AND ($10::text[] IS NULL OR p.version_text = ANY ($10))
        LIMIT 1
    ), false))
ORDER BY resource_id
LIMIT $11
