"""Whose transcripts are due? One question over all companies, which tells their ids alone."""

from kernel.tenancy.migrations import SEE_ALL, SEE_AS_BEFORE

OWING_TENANTS = f"""
CREATE FUNCTION sessions_owing_transcripts() RETURNS SETOF uuid LANGUAGE plpgsql AS $$
DECLARE
    v_before text;
BEGIN
    {SEE_ALL}
    RETURN QUERY
        SELECT t.tenant_id FROM public.silas_sessions_transcriptrequest t
        WHERE t.state = 'owed' AND t.due_at <= statement_timestamp()
        GROUP BY t.tenant_id ORDER BY min(t.due_at);
    {SEE_AS_BEFORE}
END $$;
"""
OWING_TENANTS_REVERSE = "DROP FUNCTION sessions_owing_transcripts();"
