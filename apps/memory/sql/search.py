"""SQL functions and triggers of knowledge and memory: the searches, their hints, and the append-only rules.

Each search is one function, so that it is one round trip and its plans stay with the connection. They fuse the ranks by
embedding and by words. Up to 10,000 chunks are compared exactly; more through the HNSW index, which continues past rows
that are filtered out. They run with the caller's rights, behind row-level security. Why: docs/knowledge.md.
"""

# The search of documents. Candidates are the nearest 60 visible chunks and those that contain a word which is not
# common: all of them up to 2000 visible chunks, of more the best 80. Each is ranked by distance and by BM25 over all
# words of the question, with a word's frequency inside a chunk taken as one: chunks are short. Of each chunk the ranks
# are returned, by which ranks of other vectors are fused with them.
SEARCH = """
CREATE FUNCTION memory_search(p_tenant uuid, p_levels text[], p_question text, p_vector vector, p_k integer)
RETURNS TABLE (document_id uuid, version_id uuid, title text, url text, "start" integer, "end" integer, quote text,
               similarity double precision, word_rank bigint, chunk_id uuid, vector_rank bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_collections uuid[];
    v_size bigint;
    v_words text[];
    v_rare tsquery;
    v_any tsquery;
    -- Without this declaration row-level security keeps the index on words out of reach.
    v_indexed boolean := (SELECT proleakproof FROM pg_catalog.pg_proc WHERE oid = 'pg_catalog.ts_match_vq'::regproc);
BEGIN
    SELECT array_agg(id), sum(chunk_count) INTO v_collections, v_size
        FROM public.memory_collection WHERE tenant_id = p_tenant AND min_level = ANY (p_levels);
    SELECT array_agg(DISTINCT word) INTO v_words FROM (
        SELECT unnest(tsvector_to_array(to_tsvector(config::regconfig, p_question))) AS word FROM (
            SELECT DISTINCT unnest(search_configs) AS config FROM public.memory_collection
                WHERE id = ANY (v_collections)) AS configs
        LIMIT 200) AS said;
    SELECT string_agg(quote_literal(word), ' | ')::tsquery,
           string_agg(quote_literal(word), ' | ') FILTER (WHERE NOT EXISTS (
               SELECT FROM public.memory_collection WHERE id = ANY (v_collections) AND word = ANY (common_words)
           ))::tsquery
        INTO v_any, v_rare FROM unnest(v_words) AS word;
    PERFORM set_config('hnsw.iterative_scan', 'relaxed_order', true);
    RETURN QUERY
    WITH near AS MATERIALIZED (
        -- All tenants share the index, and what it finds for one of a few thousand chunks among a million of others is
        -- late and incomplete. The addition hides the order from it.
        (SELECT id, words, embedding <=> p_vector AS distance FROM public.memory_chunk
            WHERE v_size <= 10000 AND tenant_id = p_tenant AND collection_id = ANY (v_collections)
            ORDER BY (embedding <=> p_vector) + 0 LIMIT 60)
        UNION ALL
        (SELECT id, words, embedding <=> p_vector AS distance FROM public.memory_chunk
            WHERE v_size > 10000 AND tenant_id = p_tenant AND collection_id = ANY (v_collections)
            ORDER BY embedding <=> p_vector LIMIT 60)
    ), worded AS MATERIALIZED (
        SELECT id, words, embedding <=> p_vector AS distance FROM public.memory_chunk
            WHERE (v_indexed OR v_size <= 10000)
                AND tenant_id = p_tenant AND collection_id = ANY (v_collections) AND words @@ v_rare
            -- `ts_rank` weighs all words alike, so that a limit may leave out the only chunk with a name.
            ORDER BY ts_rank(words, v_rare) DESC, id LIMIT CASE WHEN v_size > 2000 THEN 80 END
    ), candidates AS MATERIALIZED (
        SELECT DISTINCT ON (id) id, words, distance
            FROM (SELECT * FROM near UNION ALL SELECT * FROM worded) AS both_ways
    ), said AS MATERIALIZED (
        -- Each candidate's words are looked up among those asked for: to look for each of these in each candidate would
        -- take seconds for a long question.
        SELECT id, word FROM candidates CROSS JOIN LATERAL unnest(tsvector_to_array(words)) AS word
            JOIN unnest(v_words) AS asked(word) USING (word) WHERE words @@ v_any
    ), weights AS (
        -- BM25's inverse document frequency: of common words as counted at the last change, of rare ones as found.
        SELECT word, ln(1 + (greatest(v_size, chunks) - chunks + 0.5) / (chunks + 0.5)) AS weight FROM (
            SELECT word, greatest(count(*), (
                SELECT sum(common_counts[array_position(common_words, word)]) FROM public.memory_collection
                    WHERE id = ANY (v_collections)
            )) AS chunks FROM said GROUP BY word) AS counted
    ), scores AS (
        SELECT id, distance, coalesce(weight, 0)
                / (0.25 + 0.75 * length(words) / (avg(length(words)) OVER () + 0.001) + 1 / 1.2) AS score
            FROM candidates LEFT JOIN (
                SELECT id, sum(weight) AS weight FROM said JOIN weights USING (word) GROUP BY id) AS weighed USING (id)
    ), ranks AS (
        SELECT id, distance, row_number() OVER (ORDER BY distance, id) AS by_distance,
                CASE WHEN score > 0 THEN row_number() OVER (ORDER BY score DESC, distance, id) END AS by_words
            FROM scores
    ), best AS (
        -- Reciprocal rank fusion. The weights were tuned with `python -m evals.retrieval`.
        SELECT id, distance, by_words, by_distance,
                1.0 / (10 + by_distance) + coalesce(0.3 / (10 + by_words), 0) AS score
            FROM ranks
    )
    SELECT version.document_id, version.id, chunk.context::text, document.url::text,
            chunk."start", chunk."end", chunk.text, coalesce(greatest(0, 1 - best.distance), 0), best.by_words,
            chunk.id, best.by_distance
        FROM (SELECT * FROM best ORDER BY by_words = 1 DESC NULLS LAST, score DESC, distance, id LIMIT p_k) AS best
        JOIN public.memory_chunk AS chunk ON chunk.id = best.id
        JOIN public.memory_documentversion AS version ON version.id = chunk.version_id
        JOIN public.memory_document AS document ON document.id = version.document_id
        ORDER BY best.score DESC, best.distance, best.id;
END $$;
"""
SEARCH_REVERSE = "DROP FUNCTION memory_search(uuid, text[], text, vector, integer);"

# How many chunks a collection has, which words more than one in a hundred of them (and more than forty) hold and how
# often, and the text search configurations of the documents.
REFRESH = """
CREATE FUNCTION memory_refresh(p_tenant uuid, p_collection uuid) RETURNS void LANGUAGE sql AS $$
    WITH mine AS MATERIALIZED (
        SELECT words FROM public.memory_chunk WHERE tenant_id = p_tenant AND collection_id = p_collection
    ), size AS (
        SELECT count(*) AS chunks FROM mine
    ), common AS (
        SELECT array_agg(lexeme ORDER BY lexeme) AS words, array_agg(chunks ORDER BY lexeme) AS counts FROM (
            SELECT word.lexeme, count(*) AS chunks FROM mine, unnest(mine.words) AS word
                GROUP BY word.lexeme HAVING count(*) > greatest(40, 0.01 * (SELECT chunks FROM size))) AS counted
    ), configs AS (
        SELECT array_agg(DISTINCT search_config ORDER BY search_config) AS names FROM public.memory_document
            WHERE tenant_id = p_tenant AND collection_id = p_collection
    )
    UPDATE public.memory_collection SET chunk_count = size.chunks, common_words = coalesce(common.words, '{}'),
            common_counts = coalesce(common.counts, '{}'), search_configs = coalesce(configs.names, '{english}')
        FROM size, common, configs WHERE tenant_id = p_tenant AND id = p_collection;
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

# Of each scope and tier the newest p_reach items are compared exactly: the scope is the way in, not a filter behind an
# index over everybody's, and what a question costs does not grow with how much was ever said. p_by is semantic (words
# or meaning), keyword (words only) or newest (either, newest first; without a question all). Archived memories are not
# found; `marked` are those whose author had read instructions to the assistant.
RECALL = """
CREATE FUNCTION memory_recall(p_tenant uuid, p_scopes text[], p_tiers text[], p_question text, p_vector vector,
                              p_by text, p_k integer, p_reach integer)
RETURNS TABLE (id uuid, reference text, memory_type text, trust text, taint text, content text,
               created_at timestamptz, similarity double precision, marked boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_any tsquery := replace(strip(to_tsvector('english', p_question))::text, ''' ''', ''' | ''')::tsquery;
    v_telling tsquery := v_any;
BEGIN
    RETURN QUERY
    WITH near AS MATERIALIZED (
        SELECT item.id, item.words, item.embedding <=> p_vector AS distance
            FROM unnest(p_scopes) AS mine(scope) CROSS JOIN unnest(p_tiers) AS wanted(tier) CROSS JOIN LATERAL (
                SELECT id, words, embedding FROM public.memory_memoryitem
                    WHERE tenant_id = p_tenant AND memory_memoryitem.scope = mine.scope
                        AND memory_memoryitem.tier = wanted.tier AND archived_at IS NULL
                        AND (valid_until IS NULL OR valid_until > now())
                    ORDER BY memory_memoryitem.created_at DESC LIMIT p_reach
            ) AS item
    ), said AS (
        SELECT * FROM near WHERE false
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
            FROM ranked ORDER BY score DESC, distance, id LIMIT CASE WHEN p_by = 'semantic' THEN 4 * p_k END
    )
    SELECT item.id, item.reference::text, item.memory_type::text, item.trust::text, item.taint::text, item.content,
            item.created_at, coalesce(greatest(0, 1 - best.distance), 0), item.marked
        FROM best JOIN public.memory_memoryitem AS item ON item.id = best.id
        WHERE item.words @@ v_any OR (p_by <> 'keyword' AND best.distance < 0.75)
            OR (p_by = 'newest' AND numnode(v_any) = 0)
        ORDER BY CASE WHEN p_by = 'newest' THEN item.created_at END DESC, best.score DESC, best.distance, best.id
        LIMIT p_k;
END $$;
"""
RECALL_REVERSE = "DROP FUNCTION memory_recall(uuid, text[], text[], text, vector, text, integer, integer);"

# What the company remembers for everybody, for workers that may read no memory: with the rights of its owner, of the
# transaction's tenant only, and without what was written after its author had read instructions to the assistant.
RECALL_COMPANY = """
CREATE FUNCTION memory_recall_company(p_tenant uuid, p_question text, p_vector vector, p_k integer)
RETURNS TABLE (id uuid, reference text, memory_type text, trust text, taint text, content text,
               created_at timestamptz, similarity double precision, marked boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF NOT coalesce(p_tenant::text = current_setting('silas.tenant', true), false) THEN
        RAISE EXCEPTION 'memories are recalled in a scope of their own tenant' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN QUERY SELECT found.* FROM public.memory_recall(
        p_tenant, ARRAY['tenant:' || p_tenant], ARRAY['active'], p_question, p_vector, 'semantic', p_k, 500
    ) AS found WHERE NOT found.marked;
END $$;
"""
RECALL_COMPANY_REVERSE = "DROP FUNCTION memory_recall_company(uuid, text, vector, integer);"

# A provider's vectors of a memory are of its content.
FORGET_VECTORS = """
ALTER TABLE memory_memoryvector ADD CONSTRAINT memory_vector_goes_with_memory
    FOREIGN KEY (memory_id) REFERENCES memory_memoryitem (id) ON DELETE CASCADE;
CREATE FUNCTION memory_forget_vectors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM public.memory_memoryvector WHERE memory_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER memory_vectors_follow_content AFTER UPDATE OF content ON memory_memoryitem
    FOR EACH ROW WHEN (NEW.content IS DISTINCT FROM OLD.content) EXECUTE FUNCTION memory_forget_vectors();
"""
FORGET_VECTORS_REVERSE = """
DROP TRIGGER memory_vectors_follow_content ON memory_memoryitem;
DROP FUNCTION memory_forget_vectors;
ALTER TABLE memory_memoryvector DROP CONSTRAINT memory_vector_goes_with_memory;
"""

KEEP_MARKS = """
CREATE FUNCTION memory_keep_marks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.id, NEW.tenant_id, NEW.scope, NEW.source_kind, NEW.reference, NEW.created_at, NEW.tier)
            IS DISTINCT FROM
            (OLD.id, OLD.tenant_id, OLD.scope, OLD.source_kind, OLD.reference, OLD.created_at, OLD.tier)
    THEN
        RAISE EXCEPTION 'a memory keeps whose it is and where it came from' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF array_position(ARRAY['owner', 'auth', 'external'], NEW.taint::text)
            < array_position(ARRAY['owner', 'auth', 'external'], OLD.taint::text) THEN
        RAISE EXCEPTION 'taint never drops' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.content <> OLD.content AND (OLD.tier = 'low_reingestion' OR OLD.trust <> 'working') THEN
        RAISE EXCEPTION 'what was said, or confirmed, does not change' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER memory_marks_are_kept BEFORE UPDATE ON memory_memoryitem
    FOR EACH ROW EXECUTE FUNCTION memory_keep_marks();
"""
KEEP_MARKS_REVERSE = """
DROP TRIGGER memory_marks_are_kept ON memory_memoryitem;
DROP FUNCTION memory_keep_marks;
"""
