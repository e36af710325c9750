"""The database's own part of accepting a visitor's message: all of it, in one call that is a transaction by itself.

Whoever writes waits for nothing else, so nothing else is on this way: lock the conversation, know a message that came
before, refuse what is too much, number and keep the message, owe it an answer, write it down. The audit log last.
`p_signed`: how far a message is trusted that bore a signature, good or bad; empty where nobody signed.
What is said to a person is owed no answer but a look of the gates (`overheard`, ADR 43), and never waits for that.
"""

from kernel.tenancy.migrations import ENTER

ACCEPT = f"""
CREATE FUNCTION sessions_accept(
    p_tenant uuid, p_session uuid, p_entry uuid, p_client text, p_text text, p_preview text, p_now timestamptz,
    p_trace text, p_max_seq bigint, p_max_pending bigint, p_max_waiting bigint, p_audit text,
    p_signed text,
    OUT outcome text, OUT at_seq bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_session public.silas_sessions_chatsession;
    v_taint text := 'external';
BEGIN
    {ENTER}
    SELECT * INTO v_session FROM public.silas_sessions_chatsession s
        WHERE s.id = p_session AND s.tenant_id = p_tenant FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        outcome := 'unknown';
        RETURN;
    END IF;
    IF p_client <> '' THEN
        SELECT e.seq INTO at_seq FROM public.silas_sessions_chronicleentry e
            WHERE e.session_id = p_session AND e.client_id = p_client;
        IF FOUND THEN
            outcome := 'repeated';
            RETURN;
        END IF;
    END IF;
    IF v_session.seq >= p_max_seq THEN
        outcome := 'full';
        RETURN;
    END IF;
    IF v_session.owner = 'bot' AND public.bus_pending(p_tenant, 'proxy', p_session::text) >= p_max_pending THEN
        outcome := 'busy';
        RETURN;
    END IF;
    IF v_session.owner = 'bot' AND public.bus_waiting(p_tenant, 'proxy', p_max_waiting) >= p_max_waiting THEN
        outcome := 'crowded';
        RETURN;
    END IF;
    IF v_session.level <> 'public' AND coalesce(v_session.level_expires_at > p_now, true) THEN
        v_taint := 'auth';
    END IF;
    IF p_signed <> '' THEN
        v_taint := p_signed;
    END IF;
    at_seq := v_session.seq + 1;
    UPDATE public.silas_sessions_chatsession
        SET seq = at_seq, preview = p_preview, last_sender = 'visitor', last_active_at = p_now WHERE id = p_session;
    INSERT INTO public.silas_sessions_chronicleentry
        (id, tenant_id, session_id, seq, kind, sender, text, payload, taint, client_id, turn, created_at)
        VALUES
        (p_entry, p_tenant, p_session, at_seq, 'message', 'visitor', p_text, '{{}}', v_taint, p_client, 0, p_now);
    PERFORM public.bus_owe(p_tenant, 'proxy', 'user_message', p_session::text, 'message:' || p_entry, p_trace, 'user',
                    v_taint, jsonb_build_object('seq', at_seq, 'overheard', v_session.owner <> 'bot'));
    PERFORM public.audit_append(p_tenant, p_tenant, p_audit);
    outcome := 'accepted';
END $$;
"""
ACCEPT_REVERSE = """
DROP FUNCTION sessions_accept(
    uuid, uuid, uuid, text, text, text, timestamptz, text, bigint, bigint, bigint, text, text
);
"""
