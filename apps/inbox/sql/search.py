"""Searches of messages and contacts by the columns that `apps.sessions.sql.inbox` adds."""

# The conversations of the scope's tenant in which a message holds these words, or whose contact does.
SAID = """
    SELECT entry.session_id FROM silas_sessions_chronicleentry entry
    WHERE entry.tenant_id = %s AND entry.words @@ to_tsquery('simple'::regconfig, %s)
"""
KNOWN = """
    SELECT known.id FROM silas_sessions_chatsession known WHERE known.tenant_id = %s AND known.contact @@ %s::tsquery
"""
# The names that share the most pieces with what was typed.
NEAR = """
    SELECT DISTINCT customer_name, length(contact) - length(ts_delete(contact, %s::text[])) AS shared
    FROM silas_sessions_chatsession
    WHERE tenant_id = %s AND contact @@ %s::tsquery AND customer_name <> ''
    ORDER BY shared DESC, customer_name LIMIT %s
"""
