"""What the database does for the desk: it opens what a visitor writes in, and finds what was said by its words.

The trigger runs under the conversation's row lock, which whoever stores a message holds; nobody who resolves can slip
between. The column of words is the database's own and no field of the model: entries are written with columns by name.
Only `@@` on a stored column is declared leakproof (ADR 12), so that row-level security lets its index be used.
"""

REOPEN = """
CREATE FUNCTION sessions_reopen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE silas_sessions_deskstate SET status = 'open', until = NULL, changed_at = NEW.created_at
        WHERE session_id = NEW.session_id AND status <> 'open';
    RETURN NULL;
END $$;
CREATE TRIGGER sessions_reopen AFTER INSERT ON silas_sessions_chronicleentry
    FOR EACH ROW WHEN (NEW.kind = 'message' AND NEW.sender = 'visitor') EXECUTE FUNCTION sessions_reopen();
"""
# Whatever a visitor does is an answer: an answer pressed, a secret given and a file as well as words.
REOPEN_ANY = """
DROP TRIGGER sessions_reopen ON silas_sessions_chronicleentry;
CREATE TRIGGER sessions_reopen AFTER INSERT ON silas_sessions_chronicleentry
    FOR EACH ROW WHEN (NEW.sender = 'visitor' AND NEW.kind IN ('message', 'decision', 'secure_input_completed', 'file'))
    EXECUTE FUNCTION sessions_reopen();
"""
REOPEN_ANY_REVERSE = """
DROP TRIGGER sessions_reopen ON silas_sessions_chronicleentry;
CREATE TRIGGER sessions_reopen AFTER INSERT ON silas_sessions_chronicleentry
    FOR EACH ROW WHEN (NEW.kind = 'message' AND NEW.sender = 'visitor') EXECUTE FUNCTION sessions_reopen();
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
# The conversations of the scope's tenant in which a message holds all these words.
SAID = """
    SELECT DISTINCT entry.session_id FROM silas_sessions_chronicleentry entry
    WHERE entry.tenant_id = %s AND entry.words @@ websearch_to_tsquery('simple'::regconfig, %s)
"""
