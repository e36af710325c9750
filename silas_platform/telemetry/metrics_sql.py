"""The SQL function behind the database's share of `/metrics`: aggregates over all tenants, no row and no text of any.

Labels are queues and risks. Each read follows a partial index, apart from today's spending, which reads today's
entries by tenant. `secure` grants the function to the web role only (ADR 97).
"""

from kernel.tenancy.migrations import SEE_ALL, SEE_AS_BEFORE

FORWARD = f"""
CREATE FUNCTION public.platform_metrics() RETURNS TABLE (metric text, label text, value double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET enable_seqscan = off AS $$
DECLARE
    v_before text;
    v_now timestamptz := statement_timestamp();
BEGIN
    {SEE_ALL}
    RETURN QUERY
        WITH queued AS (
            SELECT m.queue, count(*) FILTER (WHERE m.available_at <= v_now) AS due,
                   count(*) FILTER (WHERE m.available_at > v_now) AS scheduled, min(m.available_at) AS oldest
            FROM public.bus_queuemessage m WHERE m.state = 'queued' GROUP BY m.queue
        ), leased AS (
            SELECT m.queue, count(*) AS held, count(*) FILTER (WHERE m.leased_until <= v_now) AS expired
            FROM public.bus_queuemessage m WHERE m.leased_until IS NOT NULL GROUP BY m.queue
        ), dead AS (
            SELECT m.queue, count(*) AS dead FROM public.bus_queuemessage m WHERE m.state = 'dead' GROUP BY m.queue
        ), cards AS (
            SELECT c.risk, count(*) AS waiting, min(c.created_at) AS oldest
            FROM public.approvals_card c WHERE c.status IN ('open', 'assigned') GROUP BY c.risk
        ), spent AS (
            SELECT coalesce(sum(e.amount), 0) AS amount
            FROM public.tenants_tenant t
            JOIN public.guard_spendentry e ON e.tenant_id = t.id AND e.day = (v_now AT TIME ZONE 'UTC')::date
        )
        SELECT 'queue_due', queued.queue::text, queued.due::float8 FROM queued
        UNION ALL SELECT 'queue_scheduled', queued.queue::text, queued.scheduled::float8 FROM queued
        UNION ALL SELECT 'queue_oldest_due_seconds', queued.queue::text,
                         greatest(extract(epoch FROM v_now - queued.oldest), 0)::float8 FROM queued
        UNION ALL SELECT 'queue_leased', leased.queue::text, leased.held::float8 FROM leased
        UNION ALL SELECT 'queue_leases_expired', leased.queue::text, leased.expired::float8 FROM leased
        UNION ALL SELECT 'queue_dead', dead.queue::text, dead.dead::float8 FROM dead
        UNION ALL SELECT 'cards_waiting', cards.risk::text, cards.waiting::float8 FROM cards
        UNION ALL SELECT 'cards_oldest_seconds', cards.risk::text,
                         greatest(extract(epoch FROM v_now - cards.oldest), 0)::float8 FROM cards
        UNION ALL SELECT 'spend_today_usd', '', spent.amount::float8 FROM spent;
    {SEE_AS_BEFORE}
END $$;
"""
REVERSE = "DROP FUNCTION platform_metrics();"
