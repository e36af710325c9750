"""SQL function that finds the tenants with calls whose process died, by the index of calls that are under way."""

from kernel.tenancy.migrations import SEE_ALL, SEE_AS_BEFORE

LOST = f"""
CREATE FUNCTION public.guard_lost_calls() RETURNS SETOF uuid LANGUAGE plpgsql AS $$
DECLARE
    v_before text;
BEGIN
    {SEE_ALL}
    RETURN QUERY
        SELECT DISTINCT call.tenant_id FROM public.guard_toolcall call
        WHERE call.state = 'admitted' AND call.deadline <= statement_timestamp();
    {SEE_AS_BEFORE}
END $$;
"""
LOST_REVERSE = "DROP FUNCTION guard_lost_calls();"
