"""Finds the tenants with letters that are due; ids of tenants, and nothing else, leave the function."""

from kernel.tenancy.migrations import SEE_ALL, SEE_AS_BEFORE

# A relay looks every few seconds, and at most companies there is nothing to send.
OWING_TENANTS = f"""
CREATE FUNCTION autonomy_owing_tenants() RETURNS SETOF uuid LANGUAGE plpgsql AS $$
DECLARE
    v_before text;
BEGIN
    {SEE_ALL}
    RETURN QUERY
        SELECT o.tenant_id FROM public.autonomy_outbox o WHERE o.state = 'waiting' AND o.due_at <= statement_timestamp()
        GROUP BY o.tenant_id ORDER BY min(o.due_at);
    {SEE_AS_BEFORE}
END $$;
"""
OWING_TENANTS_REVERSE = "DROP FUNCTION autonomy_owing_tenants();"
