"""At which companies does an approved change of documents wait? Ids of tenants, nothing else, leave the function."""

from kernel.tenancy.migrations import SEE_ALL, SEE_AS_BEFORE

WAITING_TENANTS = f"""
CREATE FUNCTION work_knowledge_waiting_tenants() RETURNS SETOF uuid LANGUAGE plpgsql AS $$
DECLARE
    v_before text;
BEGIN
    {SEE_ALL}
    RETURN QUERY
        SELECT e.tenant_id FROM public.work_knowledgeeffect e
        WHERE e.state = 'asked' AND (e.claimed_until IS NULL OR e.claimed_until <= statement_timestamp())
        GROUP BY e.tenant_id ORDER BY min(e.created_at);
    {SEE_AS_BEFORE}
END $$;
"""
WAITING_TENANTS_REVERSE = "DROP FUNCTION work_knowledge_waiting_tenants();"
