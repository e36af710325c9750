"""SQL functions that find due work across tenants.

`bus_due` returns what may be delivered now for all tenants, from two partial indexes: queued messages by
`available_at`, and the few that are leased. Its cost depends on the messages that are due, not on the tenants that
exist or the messages that wait for a later time.
"""

from apps.bus.enums import QUEUE_OF, Kind
from kernel.tenancy.migrations import SEE_ALL, SEE_AS_BEFORE, over_all_tenants

# The due messages are collected first, unsorted: sorted by scope the planner would read the index of all scopes.
# One row for each scope with a message that may be delivered: its tenant, queue and id, how many scopes of its tenant
# come before it (fairness: every tenant's first scope precedes any tenant's second), and whether its holder fell
# silent once too often, so that the message is to be buried. Within a tenant the order is random, so that no scope's
# backlog keeps another waiting.
DUE = f"""
CREATE FUNCTION public.bus_due(p_queues text[], p_most int, p_max_attempts int)
RETURNS TABLE (turn bigint, tenant_id uuid, queue text, scope_id text, exhausted boolean)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    v_before text;
BEGIN
    {SEE_ALL}
    RETURN QUERY
        WITH due AS MATERIALIZED (
            SELECT m.tenant_id, m.queue, m.scope_id FROM public.bus_queuemessage m
            WHERE m.queue = ANY(p_queues) AND m.state = 'queued' AND m.available_at <= statement_timestamp()
            UNION ALL
            SELECT m.tenant_id, m.queue, m.scope_id FROM public.bus_queuemessage m
            WHERE m.queue = ANY(p_queues) AND m.leased_until IS NOT NULL AND m.leased_until <= statement_timestamp()
        )
        SELECT row_number() OVER (PARTITION BY scope.tenant_id ORDER BY random()), scope.tenant_id,
            scope.queue::text, scope.scope_id::text,
            head.state = 'leased' AND head.attempts + 1 >= p_max_attempts
        FROM (SELECT DISTINCT due.tenant_id, due.queue, due.scope_id FROM due) scope
        CROSS JOIN LATERAL (
            SELECT h.state, h.available_at, h.leased_until, h.attempts FROM public.bus_queuemessage h
            WHERE h.tenant_id = scope.tenant_id AND h.queue = scope.queue AND h.scope_id = scope.scope_id
              AND h.state IN ('queued', 'leased')
            ORDER BY h.position LIMIT 1
        ) head
        WHERE head.state = 'queued' AND head.available_at <= statement_timestamp()
           OR head.state = 'leased' AND head.leased_until <= statement_timestamp()
        ORDER BY 1, 2 LIMIT p_most;
    {SEE_AS_BEFORE}
END $$;
"""
DUE_REVERSE = "DROP FUNCTION bus_due(text[], int, int);"

# Tenants of which a killed consumer still holds leases.
HELD_BY = f"""
CREATE FUNCTION public.bus_held_by(p_consumer text) RETURNS SETOF uuid LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    v_before text;
BEGIN
    {SEE_ALL}
    RETURN QUERY
        SELECT DISTINCT m.tenant_id FROM public.bus_queuemessage m
        WHERE m.leased_until IS NOT NULL AND m.consumer = p_consumer;
    {SEE_AS_BEFORE}
END $$;
"""
HELD_BY_REVERSE = "DROP FUNCTION bus_held_by(text);"


def schedule_rows(kind: Kind, rows: str) -> str:
    """SQL for a migration: enqueue a job of `kind` for every row of the query `rows` (tenant, scope, due time).

    For a recurring kind this is the row that `services.schedule` moves.
    """
    return over_all_tenants(f"""
        INSERT INTO bus_queuemessage (id, tenant_id, queue, kind, message_id, trace_id, scope_id, content, sender,
                                      taint, urgency, error_code, origin_agent, state, attempts, consumer, fence,
                                      reason, available_at)
        SELECT gen_random_uuid(), tenant_id, '{QUEUE_OF[kind]}', '{kind}', '{kind}:' || scope_id, gen_random_uuid(),
               '{kind}:' || scope_id, '', 'runtime', 'auth', 'informational', '', '', 'queued', 0, '', 0, '', due_at
        FROM ({rows}) AS owed (tenant_id, scope_id, due_at)
        ON CONFLICT DO NOTHING
    """)


def unschedule_rows(kind: Kind) -> str:
    """SQL that reverses `schedule_rows`."""
    return over_all_tenants(f"DELETE FROM bus_queuemessage WHERE queue = '{QUEUE_OF[kind]}' AND kind = '{kind}'")
