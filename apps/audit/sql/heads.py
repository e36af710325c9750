"""SQL function that returns the head of every chain, for signing those that moved. It returns numbers and hashes only;
entering a platform scope instead would add an entry to the platform's own chain each time."""

from kernel.tenancy.migrations import SEE_ALL, SEE_AS_BEFORE

HEADS = f"""
CREATE FUNCTION public.audit_heads() RETURNS TABLE (chain uuid, seq bigint, entry_hash text) LANGUAGE plpgsql AS $$
DECLARE
    v_before text;
BEGIN
    {SEE_ALL}
    RETURN QUERY SELECT head.chain, head.seq, head.entry_hash::text FROM public.audit_audithead head;
    {SEE_AS_BEFORE}
END $$;
"""
HEADS_REVERSE = "DROP FUNCTION audit_heads();"
