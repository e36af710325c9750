"""The statements that find and merge memories which say the same thing (spec 6.4).

Only memories that a model asked to keep, that no person confirmed, and that are neither linked nor linked to are
merged, and only inside one scope and one memory type. The oldest stays. It takes the worst taint and the mark of all of
them, and the latest end of their validity; the others are deleted, and each leaves a row in the log. Finding reads all
of a company's memories and locks nothing. Merging locks the found rows, reads them again and groups them again, so that
a memory which changed meanwhile is not merged by its former text. Rows that are locked are left for the next run.
"""

# How two texts are compared: without case, repeated white space, and full stops or exclamation marks at the end.
_SAME = r"md5(rtrim(lower(regexp_replace(btrim(content), '\s+', ' ', 'g')), '.! '))"
_MAY_MERGE = """item.tenant_id = %(tenant)s AND item.tier = 'active' AND item.trust = 'working'
        AND item.source_kind = 'memory_op' AND item.links = '[]'
        AND (item.valid_until IS NULL OR item.valid_until > now())"""

_LINKED = """linked AS MATERIALIZED (
    SELECT (link.value ->> 'to')::uuid AS id
        FROM memory_memoryitem AS item CROSS JOIN LATERAL jsonb_array_elements(item.links) AS link
        WHERE item.tenant_id = %(tenant)s AND item.links <> '[]'
)"""

# Parameters: `tenant`, `groups` (at most so many). Returns for each group the ids of its memories.
FIND = f"""
WITH {_LINKED}
SELECT array_agg(item.id) FROM memory_memoryitem AS item
    WHERE {_MAY_MERGE} AND NOT EXISTS (SELECT FROM linked WHERE linked.id = item.id)
    GROUP BY item.scope, item.memory_type, {_SAME} HAVING count(*) > 1 LIMIT %(groups)s
"""

# Parameters: `tenant`, `ids`. The number of affected rows is the number of memories that were merged away.
MERGE = f"""
WITH {_LINKED}, locked AS MATERIALIZED (
    SELECT item.* FROM memory_memoryitem AS item
        WHERE item.id = ANY (%(ids)s) AND {_MAY_MERGE} AND NOT EXISTS (SELECT FROM linked WHERE linked.id = item.id)
        FOR NO KEY UPDATE OF item SKIP LOCKED
), grouped AS (
    SELECT id, taint, first_value(id) OVER oldest AS kept_id, count(*) OVER same AS size,
            max(array_position(ARRAY['owner', 'auth', 'external'], taint::text)) OVER same AS worst,
            bool_or(marked) OVER same AS marked,
            bool_or(valid_until IS NULL) OVER same AS lasts, max(valid_until) OVER same AS valid_until
        FROM locked
        WINDOW same AS (PARTITION BY scope, memory_type, {_SAME}),
            oldest AS (PARTITION BY scope, memory_type, {_SAME} ORDER BY created_at, id)
), gone AS (
    DELETE FROM memory_memoryitem USING grouped
        WHERE memory_memoryitem.id = grouped.id AND grouped.id <> grouped.kept_id
        RETURNING grouped.id, grouped.kept_id, grouped.taint, grouped.worst
), kept AS (
    UPDATE memory_memoryitem SET taint = (ARRAY['owner', 'auth', 'external'])[grouped.worst],
            marked = grouped.marked, updated_at = now(),
            valid_until = CASE WHEN grouped.lasts THEN NULL ELSE grouped.valid_until END
        FROM grouped
        WHERE memory_memoryitem.id = grouped.id AND grouped.id = grouped.kept_id AND grouped.size > 1
)
INSERT INTO memory_memoryconsolidation
        (id, tenant_id, merged_id, kept_id, reason, taint_before, taint_after, created_at)
    SELECT gen_random_uuid(), %(tenant)s, id, kept_id, 'duplicate', taint,
            (ARRAY['owner', 'auth', 'external'])[worst], statement_timestamp()
        FROM gone
"""
