"""SQL triggers that keep rows of this room from being rewritten. Used by the migrations only.

Decisions, answers, tokens, their uses and revocations, and looks are written once. Keys, passkeys and cards are never
deleted: of a key only its end may be written, of a passkey its counter, of a card its lifecycle.
"""

from __future__ import annotations

FACTS = (
    "approvals_decision",
    "approvals_answer",
    "approvals_approvaltoken",
    "approvals_tokenuse",
    "approvals_tokenrevocation",
    "approvals_look",
)

# A key is retired once, and its private half deleted with it. Until then it may be sealed again (manage.py
# reseal_keys), which cannot exchange it: the seal is bound to the public half. Only the tables' owner may delete a key
# (one whose seal is lost).
KEYS = """
CREATE FUNCTION approvals_key_stays() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_owner boolean := current_user = (SELECT pg_get_userbyid(relowner) FROM pg_catalog.pg_class WHERE oid = TG_RELID);
    v_ends text[] := ARRAY['sealed_private', 'certificate', 'retired_at', 'revoked_at'];
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF v_owner THEN
            RETURN OLD;
        END IF;
    ELSIF to_jsonb(NEW) - v_ends = to_jsonb(OLD) - v_ends THEN
        IF OLD.retired_at IS NULL AND NEW.retired_at IS NOT NULL AND length(NEW.sealed_private) = 0 THEN
            RETURN NEW;
        END IF;
        IF OLD.retired_at = NEW.retired_at AND NEW.sealed_private = OLD.sealed_private AND OLD.revoked_at IS NULL THEN
            RETURN NEW;
        END IF;
        IF NEW.retired_at IS NULL AND OLD.retired_at IS NULL AND length(NEW.sealed_private) > 0 THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'an approver''s key cannot be exchanged' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER approvals_approverkey_stays BEFORE UPDATE OR DELETE ON approvals_approverkey
    FOR EACH ROW EXECUTE FUNCTION approvals_key_stays();
CREATE TRIGGER approvals_approverkey_no_truncate BEFORE TRUNCATE ON approvals_approverkey
    FOR EACH STATEMENT EXECUTE FUNCTION approvals_refuse();
"""
KEYS_REVERSE = """
DROP TRIGGER approvals_approverkey_stays ON approvals_approverkey;
DROP TRIGGER approvals_approverkey_no_truncate ON approvals_approverkey;
DROP FUNCTION approvals_key_stays();
"""

# A passkey's key, person and domain never change, and its counter never runs backwards.
PASSKEYS = """
CREATE FUNCTION approvals_passkey_stays() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_moving text[] := ARRAY['name', 'sign_count', 'last_used_at', 'removed_at'];
BEGIN
    IF TG_OP = 'DELETE' OR to_jsonb(NEW) - v_moving IS DISTINCT FROM to_jsonb(OLD) - v_moving
       OR NEW.sign_count < OLD.sign_count
       OR (OLD.removed_at IS NOT NULL AND NEW.removed_at IS DISTINCT FROM OLD.removed_at)
    THEN
        RAISE EXCEPTION 'a passkey cannot be exchanged' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER approvals_passkey_stays BEFORE UPDATE OR DELETE ON approvals_passkey
    FOR EACH ROW EXECUTE FUNCTION approvals_passkey_stays();
CREATE TRIGGER approvals_passkey_no_truncate BEFORE TRUNCATE ON approvals_passkey
    FOR EACH STATEMENT EXECUTE FUNCTION approvals_refuse();
"""
PASSKEYS_REVERSE = """
DROP TRIGGER approvals_passkey_stays ON approvals_passkey;
DROP TRIGGER approvals_passkey_no_truncate ON approvals_passkey;
DROP FUNCTION approvals_passkey_stays();
"""

# Of a program's key only the certificate and the end may be written; its public half and rights never change.
CLIENT_KEYS = """
CREATE FUNCTION approvals_clientkey_stays() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_moving text[] := ARRAY['certificate', 'revoked_at'];
BEGIN
    IF TG_OP = 'DELETE' OR to_jsonb(NEW) - v_moving IS DISTINCT FROM to_jsonb(OLD) - v_moving
       OR (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at)
    THEN
        RAISE EXCEPTION 'a program''s key cannot be exchanged' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER approvals_clientkey_stays BEFORE UPDATE OR DELETE ON approvals_clientkey
    FOR EACH ROW EXECUTE FUNCTION approvals_clientkey_stays();
CREATE TRIGGER approvals_clientkey_no_truncate BEFORE TRUNCATE ON approvals_clientkey
    FOR EACH STATEMENT EXECUTE FUNCTION approvals_refuse();
"""
CLIENT_KEYS_REVERSE = """
DROP TRIGGER approvals_clientkey_stays ON approvals_clientkey;
DROP TRIGGER approvals_clientkey_no_truncate ON approvals_clientkey;
DROP FUNCTION approvals_clientkey_stays();
"""

# What a card shows never changes. Its lifecycle (models.cards.CARD_TRANSITIONS): it starts open and waits, assigned or
# not, until it is settled once; then nothing on it changes any more.
_WAITS = "('open', 'assigned')"
CARDS = f"""
CREATE FUNCTION approvals_card_stays() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_moving text[] := ARRAY[
        'status', 'assignee_id', 'created_at', 'assigned_at', 'expires_at', 'settled_at', 'withdrawal'
    ];
BEGIN
    IF TG_OP = 'DELETE' OR to_jsonb(NEW) - v_moving IS DISTINCT FROM to_jsonb(OLD) - v_moving THEN
        RAISE EXCEPTION 'what a card says cannot be rewritten' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF OLD.status NOT IN {_WAITS} AND to_jsonb(NEW) IS DISTINCT FROM to_jsonb(OLD) THEN
        RAISE EXCEPTION 'a settled card stays settled' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION approvals_card_begins() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status <> 'open' THEN
        RAISE EXCEPTION 'a card begins open' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER approvals_card_begins BEFORE INSERT ON approvals_card
    FOR EACH ROW EXECUTE FUNCTION approvals_card_begins();
CREATE TRIGGER approvals_card_stays BEFORE UPDATE OR DELETE ON approvals_card
    FOR EACH ROW EXECUTE FUNCTION approvals_card_stays();
CREATE TRIGGER approvals_card_no_truncate BEFORE TRUNCATE ON approvals_card
    FOR EACH STATEMENT EXECUTE FUNCTION approvals_refuse();
"""
CARDS_REVERSE = """
DROP TRIGGER approvals_card_begins ON approvals_card;
DROP TRIGGER approvals_card_stays ON approvals_card;
DROP TRIGGER approvals_card_no_truncate ON approvals_card;
DROP FUNCTION approvals_card_begins();
DROP FUNCTION approvals_card_stays();
"""
