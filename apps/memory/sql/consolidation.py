"""The statements that find and merge memories which say the same thing, and find those to promote (spec 6.4).

Only memories that a model asked to keep, that no person confirmed, corrected or pinned, and that are neither linked nor
linked to are merged, and only inside one scope and one memory type. The oldest stays. It takes the worst taint and the
mark of all of them, the latest end of their validity, when all of them were said, and their relations; the others are
deleted, and each leaves a row in the log. Finding reads all of a company's memories and locks nothing. Merging locks
the found rows, reads them again and groups them again, so that a memory which changed meanwhile is not merged by its
former text. Rows that are locked are left for the next run.
"""

# How two texts are compared: without case, repeated white space, and full stops or exclamation marks at the end.
SAME = r"md5(rtrim(lower(regexp_replace(btrim(content), '\s+', ' ', 'g')), '.! '))"
# A row as one of its events, as `rules.Event` writes it; and how many events are kept of one memory.
_OWN_EVENT = """concat_ws(' ', coalesce(session_id::text, '-'), reference,
        to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))"""
MAX_EVENTS = 50
_MAY_MERGE = """item.tenant_id = %(tenant)s AND item.tier = 'active' AND item.trust = 'working'
        AND item.archived_at IS NULL AND item.source_kind = 'memory_op' AND item.links = '[]'
        AND NOT item.pinned AND item.revisions = '[]'
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
    GROUP BY item.scope, item.memory_type, {SAME} HAVING count(*) > 1 LIMIT %(groups)s
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
        WINDOW same AS (PARTITION BY scope, memory_type, {SAME}),
            oldest AS (PARTITION BY scope, memory_type, {SAME} ORDER BY created_at, id)
), said AS (
    SELECT grouped.kept_id, (array_agg(DISTINCT event ORDER BY event))[1:{MAX_EVENTS}] AS events
        FROM locked JOIN grouped USING (id) CROSS JOIN LATERAL unnest(locked.events || {_OWN_EVENT}) AS event
        WHERE grouped.size > 1 GROUP BY grouped.kept_id
), moved AS (
    UPDATE memory_memoryrelation SET memory_id = grouped.kept_id FROM grouped
        WHERE memory_memoryrelation.memory_id = grouped.id AND grouped.id <> grouped.kept_id
), gone AS (
    DELETE FROM memory_memoryitem USING grouped
        WHERE memory_memoryitem.id = grouped.id AND grouped.id <> grouped.kept_id
        RETURNING grouped.id, grouped.kept_id, grouped.taint, grouped.worst
), kept AS (
    UPDATE memory_memoryitem SET taint = (ARRAY['owner', 'auth', 'external'])[grouped.worst],
            marked = grouped.marked, events = said.events, updated_at = now(),
            valid_until = CASE WHEN grouped.lasts THEN NULL ELSE grouped.valid_until END
        FROM grouped JOIN said USING (kept_id)
        WHERE memory_memoryitem.id = grouped.id AND grouped.id = grouped.kept_id
)
INSERT INTO memory_memoryconsolidation
        (id, tenant_id, merged_id, kept_id, reason, taint_before, taint_after, created_at)
    SELECT gen_random_uuid(), %(tenant)s, id, kept_id, 'duplicate', taint,
            (ARRAY['owner', 'auth', 'external'])[worst], statement_timestamp()
        FROM gone
"""

# The levels of `rules.Level` in their order.
_LEVEL = """array_position(ARRAY['raw', 'episode', 'fact', 'profile'],
        CASE WHEN item.tier = 'low_reingestion' THEN 'raw' ELSE item.memory_type::text END)"""

# Parameters: `tenant`, `since` (raw memories are read from then on), `least` (events that a memory of each level needs
# for the next one). Returns for each group of memories that say the same the ids of its memories. Of a group of one
# level it reads how many events there are; whether these are enough is decided by `rules`.
FIND_PROMOTABLE = f"""
SELECT array_agg(item.id) FROM memory_memoryitem AS item
    LEFT JOIN memory_memoryconsolidation AS log ON log.tenant_id = item.tenant_id AND log.merged_id = item.id
    LEFT JOIN memory_memoryquestion AS question ON question.tenant_id = item.tenant_id
        AND question.kind = 'profile' AND question.memory_id = item.id
    WHERE item.tenant_id = %(tenant)s AND item.archived_at IS NULL AND NOT item.marked AND log.id IS NULL
        AND (item.valid_until IS NULL OR item.valid_until > now())
        AND (item.tier = 'active' AND item.source_kind IN ('memory_op', 'promotion', 'kept_proposal')
                AND item.memory_type IN ('episode', 'fact', 'profile')
            OR item.source_kind = 'conversation_raw' AND item.created_at > %(since)s)
    GROUP BY item.scope, {SAME}
    HAVING count(DISTINCT {_LEVEL}) > 1
        OR NOT bool_or(question.id IS NOT NULL)
            AND sum(greatest(1, cardinality(item.events) + (item.source_kind <> 'promotion')::int))
                >= (%(least)s::int[])[max({_LEVEL})]
"""
