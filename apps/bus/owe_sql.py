"""The bus for database functions of rooms above: what is pending, and one more message that is owed."""

PENDING = """
CREATE FUNCTION bus_pending(p_tenant uuid, p_queue text, p_scope text) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT count(*) FROM public.bus_queuemessage
    WHERE tenant_id = p_tenant AND queue = p_queue AND scope_id = p_scope AND state IN ('queued', 'leased')
$$;
"""
PENDING_REVERSE = "DROP FUNCTION bus_pending(uuid, text, text);"

# How many wait on a tenant's queue, but never counted further than the caller wants to know.
WAITING = """
CREATE FUNCTION bus_waiting(p_tenant uuid, p_queue text, p_most bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT count(*) FROM (
        SELECT FROM public.bus_queuemessage
        WHERE tenant_id = p_tenant AND queue = p_queue AND state IN ('queued', 'leased') LIMIT p_most
    ) waiting
$$;
"""
WAITING_REVERSE = "DROP FUNCTION bus_waiting(uuid, text, bigint);"

# Kind and payload are the caller's promise, as `apps.bus.rules.ROUTES` would have checked them.
OWE = """
CREATE FUNCTION bus_owe(
    p_tenant uuid, p_queue text, p_kind text, p_scope text, p_message_id text, p_trace text, p_sender text,
    p_taint text, p_payload jsonb
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO public.bus_queuemessage
        (id, tenant_id, queue, kind, scope_id, message_id, trace_id, sender, taint, payload, content, urgency,
         error_code, origin_agent, state, attempts, consumer, fence, reason)
    VALUES (gen_random_uuid(), p_tenant, p_queue, p_kind, p_scope, p_message_id, p_trace, p_sender, p_taint, p_payload,
            '', 'informational', '', '', 'queued', 0, '', 0, '')
    ON CONFLICT (tenant_id, queue, message_id) DO NOTHING
$$;
"""
OWE_REVERSE = "DROP FUNCTION bus_owe(uuid, text, text, text, text, text, text, text, jsonb);"
