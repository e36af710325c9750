"""Which companies is it time to look at? Asked once a tick, of all tenants at once; ids of tenants, and nothing else,
leave the function."""

from kernel.tenancy.migrations import SEE_ALL, SEE_AS_BEFORE

DUE_TENANTS = f"""
CREATE FUNCTION autonomy_due_tenants() RETURNS SETOF uuid LANGUAGE plpgsql AS $$
DECLARE
    v_before text;
BEGIN
    {SEE_ALL}
    RETURN QUERY
        SELECT s.tenant_id FROM public.autonomy_autonomysettings s
        WHERE (s.ticked_at IS NULL
               OR s.ticked_at <= statement_timestamp() - make_interval(secs => s.heartbeat_seconds))
          AND (s.enabled OR EXISTS (SELECT FROM public.autonomy_autonomoussession a
                                    WHERE a.tenant_id = s.tenant_id AND a.ended_at IS NULL))
        ORDER BY s.ticked_at NULLS FIRST;
    {SEE_AS_BEFORE}
END $$;
"""
DUE_TENANTS_REVERSE = "DROP FUNCTION autonomy_due_tenants();"
# A place is held from the moment a session is let in until it ends.
RUNNING = "SELECT count(*) FROM public.autonomy_autonomoussession WHERE admitted_at IS NOT NULL AND ended_at IS NULL"
