"""The search as one function of the database: one round trip, its plans cached by the connection.

Two lanes of candidates, fused by reciprocal rank (k = 60): the nearest embeddings, and the rows that hold one of the
question's telling words (those that are not common in the visible collections). Small knowledge is compared exactly;
large knowledge through the HNSW index, which goes on past rows that the caller may not see. Row-level security applies:
the function runs with its caller's rights. Numbers are explained in docs/knowledge.md.
"""

EXACT_UP_TO = 2000
LANE = 40

SEARCH = f"""
CREATE FUNCTION memory_search(p_tenant uuid, p_levels text[], p_question text, p_vector vector, p_k integer)
RETURNS TABLE (document_id uuid, version_id uuid, title text, url text, "start" integer, "end" integer, quote text,
               similarity double precision)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_collections uuid[];
    v_size bigint;
    v_asked tsvector := to_tsvector('english', p_question);
    v_any tsquery;
    v_telling tsquery;
BEGIN
    SELECT array_agg(id), sum(chunk_count) INTO v_collections, v_size
        FROM memory_collection WHERE tenant_id = p_tenant AND min_level = ANY (p_levels);
    -- Every lexeme stands in quotes in a tsvector's text, so that joining them with | makes the query of any of them.
    v_any := replace(strip(v_asked)::text, ''' ''', ''' | ''')::tsquery;
    v_telling := replace(strip(ts_delete(v_asked, ARRAY(
        SELECT unnest(common_words) FROM memory_collection WHERE id = ANY (v_collections)
    )))::text, ''' ''', ''' | ''')::tsquery;
    PERFORM set_config('hnsw.iterative_scan', 'relaxed_order', true);
    RETURN QUERY
    WITH near AS MATERIALIZED (
        (SELECT id, words, embedding <=> p_vector AS distance FROM memory_chunk
            WHERE v_size > {EXACT_UP_TO} AND tenant_id = p_tenant AND collection_id = ANY (v_collections)
            ORDER BY embedding <=> p_vector LIMIT {LANE})
        UNION ALL
        -- The addition hides the order from the index, which could overlook rows of a small collection.
        (SELECT id, words, embedding <=> p_vector AS distance FROM memory_chunk
            WHERE v_size <= {EXACT_UP_TO} AND tenant_id = p_tenant AND collection_id = ANY (v_collections)
            ORDER BY (embedding <=> p_vector) + 0 LIMIT {LANE})
    ), said AS MATERIALIZED (
        SELECT id, words, embedding <=> p_vector AS distance FROM memory_chunk
            WHERE tenant_id = p_tenant AND collection_id = ANY (v_collections) AND words @@ v_telling
            ORDER BY ts_rank(words, v_telling) DESC, id LIMIT {LANE}
    ), candidates AS (
        SELECT DISTINCT ON (id) id, distance,
                ts_rank(words, v_telling) AS telling, ts_rank(words, v_any) AS spoken
            FROM (SELECT * FROM near UNION ALL SELECT * FROM said) AS both_lanes
    ), ranked AS (
        SELECT id, distance, spoken,
                row_number() OVER (ORDER BY distance, id) AS near_rank,
                row_number() OVER (ORDER BY telling DESC, spoken DESC, distance, id) AS word_rank
            FROM candidates
    ), best AS (
        SELECT id, distance,
                1.0::float8 / (60 + near_rank) + CASE WHEN spoken > 0 THEN 1.0::float8 / (60 + word_rank) ELSE 0 END AS score
            FROM ranked ORDER BY score DESC, distance, id LIMIT p_k
    )
    SELECT version.document_id, version.id, chunk.context::text, document.url::text,
            chunk."start", chunk."end", chunk.text, greatest(0, 1 - best.distance)
        FROM best
        JOIN memory_chunk AS chunk ON chunk.id = best.id
        JOIN memory_documentversion AS version ON version.id = chunk.version_id
        JOIN memory_document AS document ON document.id = version.document_id
        ORDER BY best.score DESC, best.distance, best.id;
END $$;
"""
SEARCH_REVERSE = "DROP FUNCTION memory_search(uuid, text[], text, vector, integer);"

# Embeddings stay in the row (the exact comparison reads thousands); words are compressed before anything leaves it.
STORAGE = """
ALTER TABLE memory_chunk ALTER COLUMN embedding SET STORAGE PLAIN;
ALTER TABLE memory_chunk ALTER COLUMN words SET STORAGE MAIN;
"""
STORAGE_REVERSE = """
ALTER TABLE memory_chunk ALTER COLUMN embedding SET STORAGE EXTERNAL;
ALTER TABLE memory_chunk ALTER COLUMN words SET STORAGE EXTENDED;
"""

KEEP = """
CREATE FUNCTION memory_keep_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a stored version of a document does not change' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER memory_version_is_kept BEFORE UPDATE ON memory_documentversion
    FOR EACH ROW EXECUTE FUNCTION memory_keep_version();
"""
KEEP_REVERSE = """
DROP TRIGGER memory_version_is_kept ON memory_documentversion;
DROP FUNCTION memory_keep_version;
"""
