-- The distinct versions in which a capability is provided, one index step each however many provide it.
WITH RECURSIVE found AS (
    (
        SELECT min(version_text) AS version_text
        FROM provided_capabilities
        WHERE organization_id = $1 AND capability = $2
    )
    UNION ALL
    SELECT (
        SELECT min(p.version_text)
        FROM provided_capabilities AS p
        WHERE p.organization_id = $1 AND p.capability = $2 AND p.version_text > found.version_text
    )
    FROM found
    WHERE found.version_text IS NOT NULL
)
SELECT version_text AS "version_text!" FROM found WHERE version_text IS NOT NULL AND version_text <> ''
