"""Whose skills wait to be tried? SQL for the migration: a web process asks before it enters anybody's scope."""

from kernel.tenancy.migrations import SEE_ALL, SEE_AS_BEFORE

WAITING_TENANTS = f"""
CREATE FUNCTION skills_waiting_tenants() RETURNS SETOF uuid LANGUAGE plpgsql AS $$
DECLARE
    v_before text;
BEGIN
    {SEE_ALL}
    RETURN QUERY
        SELECT v.tenant_id FROM public.skills_skillversion v
        WHERE v.status = 'proposed' AND (v.card_id IS NULL OR v.approval_token_id IS NOT NULL)
          AND (v.claimed_until IS NULL OR v.claimed_until <= statement_timestamp())
        GROUP BY v.tenant_id ORDER BY min(v.created_at);
    {SEE_AS_BEFORE}
END $$;
"""
WAITING_TENANTS_REVERSE = "DROP FUNCTION skills_waiting_tenants();"
