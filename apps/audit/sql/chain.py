"""SQL of the audit chain: the function that appends entries, and triggers that refuse any other write
(docs/audit-format.md)."""

from apps.audit.rules import PLATFORM_CHAIN
from apps.audit.writers import ACTOR_KINDS, ONLY_FOR, WORKERS_WRITE

# Characters of an entry's `data`; real entries are far shorter.
MOST_DATA = 20_000

# The head is the one row of a chain that changes, and it changes in one direction; keys stay for what they signed.
GROW = """
CREATE FUNCTION audit_head_grows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.chain <> OLD.chain OR NEW.tenant_id IS DISTINCT FROM OLD.tenant_id OR NEW.seq <= OLD.seq THEN
        RAISE EXCEPTION 'the head of an audit chain only grows' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER audit_head_grows BEFORE UPDATE ON audit_audithead FOR EACH ROW EXECUTE FUNCTION audit_head_grows();
CREATE TRIGGER audit_head_stays BEFORE DELETE ON audit_audithead FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_head_no_truncate BEFORE TRUNCATE ON audit_audithead
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_key_no_rewrite BEFORE UPDATE OR DELETE ON audit_auditkey
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_key_no_truncate BEFORE TRUNCATE ON audit_auditkey
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
"""
GROW_REVERSE = """
DROP TRIGGER audit_head_grows ON audit_audithead;
DROP TRIGGER audit_head_stays ON audit_audithead;
DROP TRIGGER audit_head_no_truncate ON audit_audithead;
DROP TRIGGER audit_key_no_rewrite ON audit_auditkey;
DROP TRIGGER audit_key_no_truncate ON audit_auditkey;
DROP FUNCTION audit_head_grows();
"""

# The head of a chain can be read by its id, because entering a platform scope to read the platform's head would make
# its chain grow.
FIND = """
CREATE POLICY tenant_lookup ON audit_audithead FOR SELECT
    USING (chain::text = (SELECT nullif(current_setting('silas.lookup', true), '')));
CREATE POLICY tenant_lookup ON audit_auditcheckpoint FOR SELECT
    USING (chain::text = (SELECT nullif(current_setting('silas.lookup', true), '')));
"""
FIND_REVERSE = """
DROP POLICY tenant_lookup ON audit_audithead;
DROP POLICY tenant_lookup ON audit_auditcheckpoint;
"""


def _quoted(kinds: str) -> str:
    return ", ".join(f"'{kind}'" for kind in kinds.split())


# Entries come as one JSON text, which is faster than eleven arrays. The hashed text is built here, byte for byte as in
# `rules.hashed_text`, so that a caller cannot forge hash, number or time. The function runs with its owner's rights,
# only for the tenant of the transaction; the login's role decides which events it may record (`writers`). What a reader
# could not parse is refused: `data` is a shallow JSON object in ASCII without spaces, actor and subject are words.
_WEB = _quoted(" ".join(ACTOR_KINDS))
_EVENTS = ", ".join(f"'{event.value}'" for event in WORKERS_WRITE)
_WHENS = "\n                     ".join(
    f"WHEN e.event IN ({', '.join(sorted(repr(event.value) for event in events))}) THEN v_kind IN ({_quoted(kinds)})"
    for kinds, events in ONLY_FOR.items()
)
_WORKERS = ", ".join(f"'{event.value} {kind}'" for event, kinds in WORKERS_WRITE.items() for kind in kinds.split())
APPEND = f"""
CREATE OR REPLACE FUNCTION audit_append(p_chain uuid, p_tenant uuid, p_entries text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    v_seq bigint;
    v_prev text;
    v_hash text;
    v_kind text;
    v_now timestamptz := clock_timestamp();
    v_when text := to_char(v_now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS')
        || CASE WHEN extract(microseconds FROM v_now)::bigint % 1000000 = 0 THEN ''
                ELSE to_char(v_now AT TIME ZONE 'UTC', '.US') END || '+00:00';
    v_worker boolean := pg_has_role(session_user, 'silas_work', 'MEMBER')
        AND NOT pg_has_role(session_user, 'silas_app', 'MEMBER');
    e record;
BEGIN
    IF p_chain IS DISTINCT FROM coalesce(p_tenant, '{PLATFORM_CHAIN}')
       OR NOT coalesce(p_tenant::text = current_setting('silas.tenant', true)
                       OR current_setting('silas.platform', true) = 'on', false) THEN
        RAISE EXCEPTION 'a chain grows in a scope of its own tenant' USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT seq, entry_hash INTO v_seq, v_prev FROM public.audit_audithead WHERE chain = p_chain FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO public.audit_audithead (chain, tenant_id, seq, entry_hash) VALUES (p_chain, p_tenant, 0, 'genesis')
            ON CONFLICT (chain) DO NOTHING;
        SELECT seq, entry_hash INTO v_seq, v_prev FROM public.audit_audithead WHERE chain = p_chain FOR UPDATE;
    END IF;
    FOR e IN SELECT * FROM json_to_recordset(p_entries::json)
        AS given(entry_id uuid, event text, actor text, subject text, data text)
    LOOP
        v_kind := split_part(e.actor, ':', 1);
        IF NOT coalesce(
            e.event IN ({_EVENTS})
            AND CASE WHEN v_worker THEN e.event || ' ' || v_kind IN ({_WORKERS})
                     {_WHENS}
                     ELSE v_kind IN ({_WEB}) END, false)
        THEN
            RAISE EXCEPTION '% may not note the event % for the actor kind %',
                session_user, left(e.event, 40), left(v_kind, 20) USING ERRCODE = 'insufficient_privilege';
        END IF;
        IF NOT coalesce(
            e.actor ~ '^[A-Za-z0-9_.:/@+#-]+$'
            AND e.subject !~ '[[:cntrl:][:space:]"]' AND strpos(e.subject, chr(92)) = 0
            AND length(e.data) <= {MOST_DATA} AND e.data ~ '^[!-~]+$' AND e.data !~ '[0-9]{{255}}'
            AND jsonb_typeof(e.data::jsonb) = 'object' AND NOT jsonb_path_exists(e.data::jsonb, '$.**{{12}}'), false)
        THEN
            RAISE EXCEPTION 'an entry holds ids, kinds and counts' USING ERRCODE = 'check_violation';
        END IF;
        v_seq := v_seq + 1;
        v_hash := encode(sha256(convert_to(
            '{{"actor":"' || e.actor || '","chain":"' || p_chain || '","data":' || to_json(e.data)
            || ',"entry_id":"' || e.entry_id || '","event":"' || e.event || '","prev_hash":"' || v_prev
            || '","seq":' || v_seq || ',"subject":"' || public.audit_ascii(e.subject)
            || '","timestamp":"' || v_when || '"}}', 'UTF8')), 'hex');
        INSERT INTO public.audit_auditentry
            (entry_id, tenant_id, chain, seq, event, actor, subject, data, timestamp, prev_hash, entry_hash)
        VALUES (e.entry_id, p_tenant, p_chain, v_seq, e.event, e.actor, e.subject, e.data, v_now, v_prev, v_hash);
        v_prev := v_hash;
    END LOOP;
    UPDATE public.audit_audithead SET seq = v_seq, entry_hash = v_prev WHERE chain = p_chain AND seq < v_seq;
    RETURN v_seq;
END $$;
CREATE OR REPLACE FUNCTION audit_ascii(p_word text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    v_done text := '';
    v_code int;
BEGIN
    IF p_word ~ '^[ -~]*$' THEN
        RETURN p_word;
    END IF;
    FOR v_place IN 1 .. length(p_word) LOOP
        v_code := ascii(substr(p_word, v_place, 1));
        v_done := v_done || CASE
            WHEN v_code < 127 THEN chr(v_code)
            WHEN v_code < 65536 THEN chr(92) || 'u' || lpad(to_hex(v_code), 4, '0')
            ELSE chr(92) || 'u' || to_hex(55296 + ((v_code - 65536) >> 10))
                || chr(92) || 'u' || to_hex(56320 + ((v_code - 65536) & 1023)) END;
    END LOOP;
    RETURN v_done;
END $$;
"""
APPEND_REVERSE = "DROP FUNCTION audit_append(uuid, uuid, text); DROP FUNCTION IF EXISTS audit_ascii(text);"
