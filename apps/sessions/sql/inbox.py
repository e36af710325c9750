"""Database functions on a conversation's rows for the inbox: reopen it when its visitor writes, and full-text search.

The trigger runs under the conversation's row lock, which the writer of a message holds, so that resolving cannot
slip between. The column of words belongs to the database and is no field of the model: entries are written with columns
by name. Only `@@` on a stored column is declared leakproof (silas_platform/up/roles.sql), so that row-level security
lets its index be used.
"""

# Everything that a visitor does is an answer: an answer pressed, a secret given and a file as well as words.
REOPEN = """
CREATE FUNCTION sessions_reopen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE public.silas_sessions_deskstate SET status = 'open', until = NULL, changed_at = NEW.created_at
        WHERE session_id = NEW.session_id AND status <> 'open';
    RETURN NULL;
END $$;
CREATE TRIGGER sessions_reopen AFTER INSERT ON silas_sessions_chronicleentry
    FOR EACH ROW WHEN (NEW.sender = 'visitor' AND NEW.kind IN ('message', 'decision', 'secure_input_completed', 'file'))
    EXECUTE FUNCTION sessions_reopen();
"""
REOPEN_REVERSE = """
DROP TRIGGER sessions_reopen ON silas_sessions_chronicleentry;
DROP FUNCTION sessions_reopen();
"""
WORDS = """
ALTER TABLE silas_sessions_chronicleentry ADD COLUMN words tsvector
    GENERATED ALWAYS AS (CASE WHEN kind = 'message' THEN to_tsvector('simple'::regconfig, text) END) STORED;
CREATE INDEX chronicle_words ON silas_sessions_chronicleentry USING gin (words);
"""
WORDS_REVERSE = """
DROP INDEX chronicle_words;
ALTER TABLE silas_sessions_chronicleentry DROP COLUMN words;
"""
# Names and customers' numbers in pieces of three letters, stored as words: `@@` is the only operator whose index
# row-level security lets through (apps/inbox/search.py).
CONTACT = """
CREATE FUNCTION sessions_grams(p_text text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.array_to_tsvector(ARRAY(
        SELECT DISTINCT pg_catalog.substr(marked, at, 3)
        FROM (
            SELECT '  ' || word[1] AS marked FROM pg_catalog.regexp_matches(
                pg_catalog.lower(p_text), '[^\\x01-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7f]+', 'g'
            ) AS word
        ) words, pg_catalog.generate_series(1, pg_catalog.length(marked) - 2) AS at
    ))
$$;
ALTER TABLE silas_sessions_chatsession ADD COLUMN contact tsvector GENERATED ALWAYS AS (
    CASE WHEN customer_name || last_customer <> '' THEN sessions_grams(customer_name || ' ' || last_customer) END
) STORED;
CREATE INDEX session_by_contact ON silas_sessions_chatsession USING gin (contact) WHERE contact IS NOT NULL;
"""
CONTACT_REVERSE = """
DROP INDEX session_by_contact;
ALTER TABLE silas_sessions_chatsession DROP COLUMN contact;
DROP FUNCTION sessions_grams(text);
"""
