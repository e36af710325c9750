"""The database's part in the graph of memories: relations go with their memory, entities with their last relation.

Entities are locked before it is looked for other relations: one that gets a relation at the same time is locked by its
writer (`graph._entities`) and stays.
"""

GOES_WITH = """
ALTER TABLE memory_memoryrelation
    ADD CONSTRAINT memory_relation_goes_with_memory
        FOREIGN KEY (memory_id) REFERENCES memory_memoryitem (id) ON DELETE CASCADE,
    ADD CONSTRAINT memory_relation_goes_with_subject
        FOREIGN KEY (subject_id) REFERENCES memory_memoryentity (id) ON DELETE CASCADE,
    ADD CONSTRAINT memory_relation_goes_with_object
        FOREIGN KEY (object_id) REFERENCES memory_memoryentity (id) ON DELETE CASCADE;

CREATE FUNCTION memory_drop_entities() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_locked uuid[];
BEGIN
    SELECT array_agg(id) INTO v_locked FROM (
        SELECT id FROM public.memory_memoryentity
            WHERE id IN (SELECT subject_id FROM gone UNION SELECT object_id FROM gone)
            ORDER BY id FOR NO KEY UPDATE SKIP LOCKED) AS entity;
    DELETE FROM public.memory_memoryentity AS entity WHERE entity.id = ANY (v_locked)
        AND NOT EXISTS (SELECT FROM public.memory_memoryrelation WHERE subject_id = entity.id)
        AND NOT EXISTS (SELECT FROM public.memory_memoryrelation WHERE object_id = entity.id);
    RETURN NULL;
END $$;
CREATE TRIGGER memory_entities_go AFTER DELETE ON memory_memoryrelation REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION memory_drop_entities();

CREATE FUNCTION memory_keep_scope() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM public.memory_memoryitem AS item CROSS JOIN public.memory_memoryentity AS entity
            WHERE item.id = NEW.memory_id AND entity.id IN (NEW.subject_id, NEW.object_id)
                AND (item.tenant_id, item.scope, item.tenant_id)
                    IS DISTINCT FROM (entity.tenant_id, entity.scope, NEW.tenant_id)
    ) THEN
        RAISE EXCEPTION 'a relation stays in the scope of its memory' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER memory_scope_is_kept BEFORE INSERT OR UPDATE ON memory_memoryrelation
    FOR EACH ROW EXECUTE FUNCTION memory_keep_scope();
"""
GOES_WITH_REVERSE = """
DROP TRIGGER memory_scope_is_kept ON memory_memoryrelation;
DROP FUNCTION memory_keep_scope;
DROP TRIGGER memory_entities_go ON memory_memoryrelation;
DROP FUNCTION memory_drop_entities;
ALTER TABLE memory_memoryrelation
    DROP CONSTRAINT memory_relation_goes_with_memory,
    DROP CONSTRAINT memory_relation_goes_with_subject,
    DROP CONSTRAINT memory_relation_goes_with_object;
"""
