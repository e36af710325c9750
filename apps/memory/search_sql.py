"""What the database does for the knowledge: the search, its hints, and the refusal to rewrite a version.

The search is one function, so that it is one round trip and its plans stay with the connection. It fuses two lanes by
reciprocal rank (k = 60): the nearest embeddings, and the rows that hold a telling word of the question, one that is not
common in the visible collections. Up to 2000 chunks are compared exactly; more through the HNSW index, which goes on
past rows that do not count. It runs with its caller's rights, behind row-level security. Why: docs/knowledge.md.
"""

SEARCH = """
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
    -- Without this declaration row-level security keeps the index on words out of reach (docs/adr/0012).
    v_indexed boolean := (SELECT proleakproof FROM pg_proc WHERE oid = 'pg_catalog.ts_match_vq'::regproc);
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
            WHERE v_size > 2000 AND tenant_id = p_tenant AND collection_id = ANY (v_collections)
            ORDER BY embedding <=> p_vector LIMIT 40)
        UNION ALL
        -- The addition hides the order from the index, which could overlook rows of a small collection.
        (SELECT id, words, embedding <=> p_vector AS distance FROM memory_chunk
            WHERE v_size <= 2000 AND tenant_id = p_tenant AND collection_id = ANY (v_collections)
            ORDER BY (embedding <=> p_vector) + 0 LIMIT 40)
    ), said AS MATERIALIZED (
        SELECT id, words, embedding <=> p_vector AS distance FROM memory_chunk
            WHERE (v_indexed OR v_size <= 2000)
                AND tenant_id = p_tenant AND collection_id = ANY (v_collections) AND words @@ v_telling
            ORDER BY ts_rank(words, v_telling) DESC, id LIMIT 40
    ), candidates AS (
        SELECT DISTINCT ON (id) id, distance,
                ts_rank(words, v_telling) AS telling, ts_rank(words, v_any) AS spoken
            FROM (SELECT * FROM near UNION ALL SELECT * FROM said) AS both_lanes
    ), ranked AS (
        -- Common words order the nearest rows only where no row has a telling one; else they would drown it.
        SELECT id, distance,
                telling > 0 OR (spoken > 0 AND max(telling) OVER () = 0) AS worded,
                row_number() OVER (ORDER BY distance, id) AS near_rank,
                row_number() OVER (ORDER BY telling DESC, spoken DESC, distance, id) AS word_rank
            FROM candidates
    ), best AS (
        SELECT id, distance,
                1.0::float8 / (60 + near_rank)
                    + CASE WHEN worded THEN 1.0::float8 / (60 + word_rank) ELSE 0 END AS score
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

# How many chunks a collection has, and which words more than one in a hundred of them (and more than forty) hold.
REFRESH = """
CREATE FUNCTION memory_refresh(p_tenant uuid, p_collection uuid) RETURNS void LANGUAGE sql AS $$
    WITH mine AS MATERIALIZED (
        SELECT words FROM memory_chunk WHERE tenant_id = p_tenant AND collection_id = p_collection
    ), size AS (
        SELECT count(*) AS chunks FROM mine
    )
    UPDATE memory_collection SET chunk_count = size.chunks, common_words = ARRAY(
        SELECT word.lexeme FROM mine, unnest(mine.words) AS word
            GROUP BY word.lexeme HAVING count(*) > greatest(40, 0.01 * (SELECT chunks FROM size)) ORDER BY word.lexeme
    ) FROM size WHERE tenant_id = p_tenant AND id = p_collection;
$$;
"""
REFRESH_REVERSE = "DROP FUNCTION memory_refresh(uuid, uuid);"

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
