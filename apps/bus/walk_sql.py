"""The database's own part of fairness: whose turn is it, among scopes and among tenants?

Scopes are walked from head to head by the index that orders them, so that a step costs the same however much waits in
a scope. A head is a scope's oldest live message; while it may not be delivered, nothing of its scope may.
"""

from kernel.tenancy.migrations import SEE_ALL, SEE_AS_BEFORE

_DELIVERABLE = """(v_head.state = 'queued' AND v_head.available_at <= statement_timestamp()
           OR v_head.state = 'leased' AND v_head.leased_until <= statement_timestamp()
              AND v_head.attempts + 1 < p_max_attempts)"""
_NEXT_HEAD = """SELECT h.scope_id, h.state, h.available_at, h.leased_until, h.attempts INTO v_head
        FROM public.bus_queuemessage h
        WHERE h.tenant_id = p_tenant AND h.queue = p_queue AND h.state IN ('queued', 'leased') AND h.scope_id > v_scope
        ORDER BY h.scope_id, h.position LIMIT 1"""

# Takes the next deliverable head after `p_after` in the order of scopes, which goes round. Who serves one scope after
# the other serves each in turn.
LEASE_IN_TURN = f"""
CREATE FUNCTION bus_lease_in_turn(
    p_tenant uuid, p_queue text, p_after text, p_consumer text, p_seconds float8, p_max_attempts int
) RETURNS SETOF bus_queuemessage LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    v_head record;
    v_scope text := p_after;
    v_round boolean := p_after = '';
BEGIN
    LOOP
        {_NEXT_HEAD};
        IF NOT FOUND AND NOT v_round THEN
            v_round := true;
            v_scope := '';
            CONTINUE;
        END IF;
        IF NOT FOUND OR v_round AND p_after <> '' AND v_head.scope_id > p_after THEN
            RETURN;
        END IF;
        v_scope := v_head.scope_id;
        IF {_DELIVERABLE} THEN
            RETURN QUERY SELECT * FROM public.bus_lease_of_scope(
                p_tenant, p_queue, v_scope, p_consumer, p_seconds, p_max_attempts);
            IF FOUND THEN
                RETURN;
            END IF;
        END IF;
    END LOOP;
END $$;
"""
LEASE_IN_TURN_REVERSE = "DROP FUNCTION bus_lease_in_turn(uuid, text, text, text, float8, int);"

WAITING_SCOPES = f"""
CREATE FUNCTION bus_waiting_scopes(p_tenant uuid, p_queue text, p_most int, p_max_attempts int)
RETURNS SETOF text LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
    v_head record;
    v_scope text := '';
    v_found int := 0;
BEGIN
    WHILE v_found < p_most LOOP
        {_NEXT_HEAD};
        EXIT WHEN NOT FOUND;
        v_scope := v_head.scope_id;
        IF {_DELIVERABLE} THEN
            v_found := v_found + 1;
            RETURN NEXT v_scope;
        END IF;
    END LOOP;
END $$;
"""
WAITING_SCOPES_REVERSE = "DROP FUNCTION bus_waiting_scopes(uuid, text, int, int);"

# Looks at every tenant, and says of each only that something waits there. What it switches on for that ends with it.
WAITING_LINES = f"""
CREATE FUNCTION bus_waiting_lines(p_queues text[], p_max_attempts int)
RETURNS TABLE (queue text, tenant_id uuid) LANGUAGE plpgsql AS $$
DECLARE
    v_before text;
BEGIN
    {SEE_ALL}
    RETURN QUERY
        SELECT q, t.id FROM public.tenants_tenant t CROSS JOIN unnest(p_queues) AS q
        WHERE EXISTS (SELECT FROM public.bus_waiting_scopes(t.id, q, 1, p_max_attempts));
    {SEE_AS_BEFORE}
END $$;
"""
WAITING_LINES_REVERSE = "DROP FUNCTION bus_waiting_lines(text[], int);"
