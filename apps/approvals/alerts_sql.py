"""At which companies do cards wait that a member may want to be told of? Asked of all tenants at once, every few
seconds; ids of tenants, and nothing else, leave the function."""

from kernel.tenancy.migrations import SEE_ALL, SEE_AS_BEFORE

ALERTING_TENANTS = f"""
CREATE FUNCTION approvals_alerting_tenants() RETURNS SETOF uuid LANGUAGE plpgsql AS $$
DECLARE
    v_before text;
BEGIN
    {SEE_ALL}
    RETURN QUERY
        SELECT a.tenant_id FROM public.approvals_alertchoice a WHERE a.way <> 'off'
        GROUP BY a.tenant_id
        HAVING EXISTS (SELECT FROM public.approvals_card c
                       WHERE c.tenant_id = a.tenant_id AND c.status IN ('open', 'assigned')
                         AND c.created_at > least(min(a.pushed_until), min(a.mailed_until)) - interval '1 minute');
    {SEE_AS_BEFORE}
END $$;
"""
ALERTING_TENANTS_REVERSE = "DROP FUNCTION approvals_alerting_tenants();"
