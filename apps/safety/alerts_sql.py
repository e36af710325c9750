"""At which companies do agents wait that a member may want to be pushed to about? Asked of all tenants at once, every
few seconds; ids of tenants, and nothing else, leave the function."""

from kernel.tenancy.migrations import SEE_ALL, SEE_AS_BEFORE

ALERTING_TENANTS = f"""
CREATE FUNCTION safety_alerting_tenants() RETURNS SETOF uuid LANGUAGE plpgsql AS $$
DECLARE
    v_before text;
BEGIN
    {SEE_ALL}
    RETURN QUERY
        SELECT DISTINCT h.tenant_id FROM public.safety_hold h
        WHERE h.state = 'open' AND h.pushed_at IS NULL
          AND EXISTS (SELECT FROM public.approvals_alertchoice a WHERE a.tenant_id = h.tenant_id AND a.way = 'push');
    {SEE_AS_BEFORE}
END $$;
"""
ALERTING_TENANTS_REVERSE = "DROP FUNCTION safety_alerting_tenants();"
