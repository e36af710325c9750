"""SQL of the trigger on earned thresholds, used by the migrations only. A row is append-only, and one that widens names
a spent approval for exactly that change (spec 5.1.6)."""

# Whether a row widens is compared with the row before it, because the row's own `…_before` could be forged; and the
# approval's card must name the same chatbot, the same actions and exactly these numbers.
HOLD = """
CREATE FUNCTION work_thresholds_hold() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    v_last record;
    v_size integer := NEW.usual_size;
    v_high double precision := NEW.usual_high;
    v_larger boolean;
    v_less_sure boolean;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        RAISE EXCEPTION 'a change of thresholds is not rewritten' USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT number, usual_size, usual_high, size_after, high_after INTO v_last FROM public.work_thresholdchange
    WHERE tenant_id = NEW.tenant_id AND deployment_id = NEW.deployment_id AND family = NEW.family
    ORDER BY number DESC LIMIT 1;
    IF NEW.number <> coalesce(v_last.number, 0) + 1 THEN
        RAISE EXCEPTION 'changes of thresholds are numbered in order' USING ERRCODE = 'insufficient_privilege';
    END IF;
    -- What was earned under other numbers of the chatbot's own holds no more.
    IF v_last.usual_size = NEW.usual_size AND v_last.usual_high = NEW.usual_high THEN
        v_size := v_last.size_after;
        v_high := v_last.high_after;
    END IF;
    v_larger := NEW.size_after > v_size;
    v_less_sure := NEW.high_after < v_high;
    IF (NEW.direction = 'widen' OR v_larger OR v_less_sure) AND NOT EXISTS (
        SELECT FROM public.approvals_approvaltoken token
        JOIN public.approvals_tokenuse spent ON spent.token_nonce = token.nonce AND spent.tenant_id = token.tenant_id
        JOIN public.approvals_decision decision ON decision.id = token.decision_id
        JOIN public.approvals_card card ON card.id = decision.card_id
        WHERE token.id = NEW.approval_token_id AND token.tenant_id = NEW.tenant_id
          AND token.scope = 'autonomy_threshold' AND card.payload_hash = token.plan_hash
          AND card.payload ->> 'scope_id' = NEW.deployment_id::text
          AND card.payload ->> 'goal_id' = 'family:' || NEW.family
          AND (NOT v_larger OR EXISTS (
              SELECT FROM jsonb_array_elements(card.payload -> 'changes') AS each
              WHERE each ->> 'key' = 'batch_review.default_size'
                AND (each ->> 'proposed_value')::numeric = NEW.size_after))
          AND (NOT v_less_sure OR EXISTS (
              SELECT FROM jsonb_array_elements(card.payload -> 'changes') AS each
              WHERE each ->> 'key' = 'batch_review.confidence.high_min'
                AND (each ->> 'proposed_value')::double precision = NEW.high_after)))
    THEN
        RAISE EXCEPTION 'nothing is widened without a spent approval' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER work_thresholds_are_held BEFORE INSERT OR UPDATE OR DELETE ON work_thresholdchange
    FOR EACH ROW EXECUTE FUNCTION work_thresholds_hold();
"""
HOLD_REVERSE = """
DROP TRIGGER work_thresholds_are_held ON work_thresholdchange;
DROP FUNCTION work_thresholds_hold;
"""
