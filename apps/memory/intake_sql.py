"""At which companies does something wait to be read? Asked often, of all tenants at once; ids of tenants, and nothing
else, leave the function."""

from kernel.tenancy.migrations import SEE_ALL, SEE_AS_BEFORE

WAITING_TENANTS = f"""
CREATE FUNCTION memory_waiting_tenants() RETURNS SETOF uuid LANGUAGE plpgsql AS $$
DECLARE
    v_before text;
BEGIN
    {SEE_ALL}
    RETURN QUERY
        SELECT i.tenant_id FROM public.memory_intake i
        WHERE i.state IN ('waiting', 'running') AND i.due_at <= statement_timestamp()
        GROUP BY i.tenant_id ORDER BY min(i.due_at);
    {SEE_AS_BEFORE}
END $$;
"""
WAITING_TENANTS_REVERSE = "DROP FUNCTION memory_waiting_tenants();"
