-- Every object of schema public as one line of text, ordered by table, then kind, then name.
WITH relation AS (
    SELECT c.oid, c.relname::text AS name, c.relkind, c.relrowsecurity, c.relforcerowsecurity, c.relacl,
           c.relispartition, c.relpersistence, c.relpartbound, c.reloptions
    FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relname NOT LIKE '\_sqlx\_%'
),
line AS (
    SELECT name AS owner, 0 AS kind, 0 AS position, '' AS item,
           'table ' || name
           || CASE WHEN relpersistence = 'u' THEN ' unlogged' ELSE '' END
           || CASE WHEN relkind = 'p' THEN ' partition by ' || pg_get_partkeydef(oid) ELSE '' END
           || CASE WHEN relispartition THEN ' partition ' || pg_get_expr(relpartbound, oid) ELSE '' END
           || CASE WHEN relrowsecurity THEN ' row-security' ELSE '' END
           || CASE WHEN relforcerowsecurity THEN ' forced' ELSE '' END
           || coalesce(' with ' || array_to_string(reloptions, ','), '') AS text
    FROM relation WHERE relkind IN ('r', 'p')
    UNION ALL
    SELECT r.name, 1, a.attnum, a.attname::text,
           '  column ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
           || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
           || CASE a.attidentity WHEN 'a' THEN ' identity always' WHEN 'd' THEN ' identity by default' ELSE '' END
           || CASE WHEN a.attgenerated = 's' THEN ' generated ' || pg_get_expr(d.adbin, d.adrelid)
                   ELSE coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') END
           || CASE WHEN a.attcollation NOT IN (0, t.typcollation)
                   THEN ' collate ' || (SELECT collname FROM pg_collation WHERE oid = a.attcollation) ELSE '' END
    FROM relation r
    JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE r.relkind IN ('r', 'p')
    UNION ALL
    SELECT r.name, 2, 0, k.conname::text, '  constraint ' || k.conname || ' ' || pg_get_constraintdef(k.oid)
    FROM relation r JOIN pg_constraint k ON k.conrelid = r.oid
    UNION ALL
    SELECT r.name, 3, 0, i.relname::text, '  index ' || pg_get_indexdef(x.indexrelid)
    FROM relation r JOIN pg_index x ON x.indrelid = r.oid JOIN pg_class i ON i.oid = x.indexrelid
    UNION ALL
    SELECT r.name, 4, 0, p.polname::text,
           '  policy ' || p.polname
           || CASE WHEN p.polpermissive THEN '' ELSE ' restrictive' END
           || CASE p.polcmd WHEN 'r' THEN ' select' WHEN 'a' THEN ' insert' WHEN 'w' THEN ' update'
                            WHEN 'd' THEN ' delete' ELSE ' all' END
           || ' to ' || (SELECT string_agg(CASE WHEN role = 0 THEN 'public' ELSE role::regrole::text END, ', '
                                           ORDER BY CASE WHEN role = 0 THEN '' ELSE role::regrole::text END)
                         FROM unnest(p.polroles) AS role)
           || coalesce(' using ' || pg_get_expr(p.polqual, p.polrelid), '')
           || coalesce(' check ' || pg_get_expr(p.polwithcheck, p.polrelid), '')
    FROM relation r JOIN pg_policy p ON p.polrelid = r.oid
    UNION ALL
    SELECT r.name, 5, 0, g.grantee::text,
           '  grant ' || string_agg(lower(g.privilege_type), ', ' ORDER BY g.privilege_type) || ' to '
           || CASE WHEN g.grantee = 0 THEN 'public' ELSE g.grantee::regrole::text END
    FROM relation r JOIN pg_class c ON c.oid = r.oid, LATERAL aclexplode(r.relacl) g
    WHERE r.relkind IN ('r', 'p') AND g.grantee <> c.relowner
    GROUP BY r.name, g.grantee
    UNION ALL
    SELECT r.name, 6, a.attnum, g.grantee::text,
           '  grant ' || string_agg(lower(g.privilege_type), ', ' ORDER BY g.privilege_type) || ' (' || a.attname || ') to '
           || CASE WHEN g.grantee = 0 THEN 'public' ELSE g.grantee::regrole::text END
    FROM relation r JOIN pg_attribute a ON a.attrelid = r.oid AND NOT a.attisdropped, LATERAL aclexplode(a.attacl) g
    GROUP BY r.name, a.attnum, a.attname, g.grantee
    UNION ALL
    SELECT r.name, 7, 0, t.tgname::text, '  trigger ' || pg_get_triggerdef(t.oid)
    FROM relation r JOIN pg_trigger t ON t.tgrelid = r.oid AND NOT t.tgisinternal
    UNION ALL
    SELECT r.name, 8, 0, '', 'view ' || r.name || ' as ' || regexp_replace(pg_get_viewdef(r.oid), '\s+', ' ', 'g')
    FROM relation r WHERE r.relkind IN ('v', 'm')
    UNION ALL
    SELECT '~', 1, 0, r.name,
           'sequence ' || r.name || ' as ' || format_type(s.seqtypid, NULL) || ' start ' || s.seqstart
           || ' increment ' || s.seqincrement
           || coalesce(' grant ' || (
                SELECT string_agg(lower(g.privilege_type) || ' to '
                           || CASE WHEN g.grantee = 0 THEN 'public' ELSE g.grantee::regrole::text END, ', '
                           ORDER BY g.grantee::regrole::text, g.privilege_type)
                FROM pg_class c, LATERAL aclexplode(c.relacl) g WHERE c.oid = r.oid AND g.grantee <> c.relowner), '')
    FROM relation r JOIN pg_sequence s ON s.seqrelid = r.oid
    UNION ALL
    SELECT '~', 2, 0, p.oid::regprocedure::text,
           'function ' || regexp_replace(pg_get_functiondef(p.oid), '\s+', ' ', 'g')
    FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prokind IN ('f', 'p')
    UNION ALL
    SELECT '~', 3, 0, t.typname::text,
           'enum ' || t.typname || ' ' || (SELECT string_agg(quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder)
                                           FROM pg_enum e WHERE e.enumtypid = t.oid)
    FROM pg_type t WHERE t.typnamespace = 'public'::regnamespace AND t.typtype = 'e'
)
SELECT text FROM line ORDER BY owner COLLATE "C", kind, position, item COLLATE "C", text COLLATE "C"
