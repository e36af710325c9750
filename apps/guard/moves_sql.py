"""How a call is admitted and settled in the database: the call, its run's counters and its money in one statement.

Whoever calls them holds the run's row lock, and for an admission its budgets'. They run with their caller's rights,
behind the tenant's wall. `p_starts` are the windows of `p_budgets`; a window that is over stays as it was.
"""

from kernel.tenancy.migrations import ENTER

# Enters a movement in the ledger and in its budgets, in the order of their ids, the installation's own last. Only what
# is spent passes a threshold. Answers with the budgets that passed one, amounts as text.
MOVE = """
CREATE FUNCTION guard_move(
    p_call guard_toolcall, p_kind text, p_reserved numeric, p_spent numeric, p_deployment uuid,
    p_entry uuid, p_day date, p_budgets uuid[], p_starts date[], p_platform_day date, p_thresholds int[]
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    v_budgets json;
    v_platform json;
BEGIN
    INSERT INTO guard_spendentry (id, tenant_id, call_id, deployment_id, kind, intent, model, purpose, day, amount)
    VALUES (p_entry, p_call.tenant_id, p_call.id, p_deployment, p_kind, p_call.intent, p_call.model, p_call.tool,
            p_day, p_reserved + p_spent);
    WITH held AS MATERIALIZED (
        SELECT b.id, w.start, b.limit_usd, CASE WHEN b.window_start = w.start THEN b.alerted ELSE 0 END AS told,
               p_spent + CASE WHEN b.window_start = w.start THEN b.spent ELSE 0 END AS now_spent
        FROM guard_budget b JOIN unnest(p_budgets, p_starts) AS w(id, start) ON w.id = b.id
        ORDER BY b.id FOR NO KEY UPDATE OF b
    ), moved AS (
        UPDATE guard_budget AS b
        SET reserved = p_reserved + CASE WHEN b.window_start = held.start THEN b.reserved ELSE 0 END,
            spent = held.now_spent,
            alerted = greatest(held.told, held.level),
            paused_in = CASE WHEN held.level = 100 AND held.told < 100 THEN held.start ELSE b.paused_in END,
            window_start = held.start
        FROM (
            SELECT id, start, told, now_spent,
                   CASE WHEN p_spent = 0 THEN 0 ELSE guard_level(now_spent, limit_usd, p_thresholds) END AS level
            FROM held
        ) AS held
        WHERE b.id = held.id AND (b.window_start IS NULL OR b.window_start <= held.start)
        RETURNING b.*, held.told
    )
    SELECT json_agg(json_build_object(
        'id', id, 'ref', ref, 'deployment_id', deployment_id, 'visitor_ref', visitor_ref, 'task_ref', task_ref,
        'period', period, 'window_start', window_start, 'spent', spent::text, 'limit_usd', limit_usd::text,
        'told', told, 'alerted', alerted
    )) INTO v_budgets FROM moved WHERE alerted > told;
    SELECT json_agg(json_build_array(of_period, passed)) INTO v_platform
        FROM guard_platform_move(p_reserved, p_spent, p_platform_day, p_thresholds);
    RETURN json_build_object('budgets', coalesce(v_budgets, '[]'), 'platform', coalesce(v_platform, '[]'));
END $$;
"""
# False when the effect key has been used before; then nothing has changed.
ADMIT = """
CREATE FUNCTION guard_admit(
    p_id uuid, p_run uuid, p_seq int, p_effect_key text, p_intent text, p_tool text, p_model text, p_digest text,
    p_reserved numeric, p_patience double precision,
    p_entry uuid, p_day date, p_budgets uuid[], p_starts date[], p_platform_day date, p_thresholds int[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_run record;
    v_call guard_toolcall;
BEGIN
    SELECT tenant_id, deployment_id INTO STRICT v_run FROM guard_guardedrun WHERE id = p_run;
    INSERT INTO guard_toolcall (id, tenant_id, run_id, seq, effect_key, intent, tool, model, args_digest, state,
                                reserved, charged, error_code, deadline)
    VALUES (p_id, v_run.tenant_id, p_run, p_seq, p_effect_key, p_intent, p_tool, p_model, p_digest, 'admitted',
            p_reserved, 0, '', statement_timestamp() + make_interval(secs => p_patience))
    ON CONFLICT (tenant_id, effect_key) DO NOTHING
    RETURNING * INTO v_call;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE guard_guardedrun SET seq = seq + 1, calls = calls + 1, cost_reserved = cost_reserved + p_reserved
    WHERE id = p_run;
    IF p_reserved <> 0 THEN
        PERFORM guard_move(v_call, 'reserve', p_reserved, 0, v_run.deployment_id,
                           p_entry, p_day, p_budgets, p_starts, p_platform_day, p_thresholds);
    END IF;
    RETURN true;
END $$;
"""
# NULL when somebody else has closed the call; then nothing has changed.
SETTLE = """
CREATE FUNCTION guard_settle(
    p_id uuid, p_state text, p_effect_key text, p_error_code text, p_measured boolean, p_charged numeric,
    p_reserved numeric, p_input_tokens int, p_output_tokens int,
    p_entry uuid, p_day date, p_budgets uuid[], p_starts date[], p_platform_day date, p_thresholds int[]
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    v_deployment uuid;
    v_call guard_toolcall;
BEGIN
    UPDATE guard_toolcall
    SET state = p_state, charged = p_charged, error_code = p_error_code, effect_key = p_effect_key,
        measured = p_measured, settled_at = statement_timestamp()
    WHERE id = p_id AND state = 'admitted'
    RETURNING * INTO v_call;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    UPDATE guard_guardedrun
    SET cost_total = cost_total + p_charged, cost_reserved = cost_reserved - v_call.reserved,
        input_tokens = input_tokens + p_input_tokens, output_tokens = output_tokens + p_output_tokens
    WHERE id = v_call.run_id
    RETURNING deployment_id INTO v_deployment;
    IF p_charged = 0 AND p_reserved = 0 THEN
        RETURN '{"budgets": [], "platform": []}';
    END IF;
    RETURN guard_move(v_call, 'settle', -p_reserved, p_charged, v_deployment,
                      p_entry, p_day, p_budgets, p_starts, p_platform_day, p_thresholds);
END $$;
"""
# A settlement that is a transaction by itself, with its entry of the audit log: 'settled', or 'lost' where somebody
# else has closed the call. Where a threshold is passed, somebody has to be told with it: nothing happens, but `TELL`.
TELL = "GU001"
SETTLE_AT_ONCE = f"""
CREATE FUNCTION guard_settle_at_once(
    p_tenant uuid, p_told text,
    p_id uuid, p_state text, p_effect_key text, p_error_code text, p_measured boolean, p_charged numeric,
    p_reserved numeric, p_input_tokens int, p_output_tokens int,
    p_entry uuid, p_day date, p_budgets uuid[], p_starts date[], p_platform_day date, p_thresholds int[]
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_passed json;
BEGIN
    {ENTER}
    v_passed := guard_settle(p_id, p_state, p_effect_key, p_error_code, p_measured, p_charged, p_reserved,
                             p_input_tokens, p_output_tokens,
                             p_entry, p_day, p_budgets, p_starts, p_platform_day, p_thresholds);
    IF v_passed IS NULL THEN
        RETURN 'lost';
    END IF;
    IF json_array_length(v_passed -> 'budgets') + json_array_length(v_passed -> 'platform') > 0 THEN
        RAISE EXCEPTION 'a threshold is passed, and somebody has to be told' USING ERRCODE = '{TELL}';
    END IF;
    PERFORM audit_append(p_tenant, p_tenant, p_told);
    RETURN 'settled';
END $$;
"""
SETTLE_AT_ONCE_REVERSE = "DROP FUNCTION guard_settle_at_once;"
# What a run may do, as it was opened and narrowed since: who judged by it elsewhere asks whether it still is so. Not a
# function of the database, which would be planned anew in every transaction.
AS_OPENED = """ROW({0}.origin, {0}.critical, {0}.phase, {0}.deployment_id, {0}.task_ref, {0}.allow, {0}.deny,
           {0}.limits)::text"""
# Stands in the audit log's entry for the call's number, which only the database knows; no word of an entry is like it.
SEQ = 10**20
# An admission that is a transaction by itself, with its entry of the audit log, of a call against which nothing speaks.
# The caller has judged the call by what it remembers of the run (`p_seen`) and counts windows in `p_day`; the database
# looks, under the locks of any admission and in their order, whether all of it still is so and whether there is room
# everywhere. `p_most_*` are the run's own bounds (`rules.room`), `p_from` and `p_until` the time for which all was
# judged. No `seq`: something is otherwise, and nothing has happened.
ADMIT_AT_ONCE = f"""
CREATE FUNCTION guard_admit_at_once(
    p_tenant uuid, p_told text, p_seen text, p_zone text, p_from timestamptz, p_until timestamptz,
    p_message uuid, p_fence bigint, p_visitor uuid,
    p_most_committed numeric, p_most_tokens bigint, p_most_calls int, p_most_seconds int,
    p_id uuid, p_run uuid, p_intent text, p_tool text, p_digest text, p_reserved numeric,
    p_patience double precision, p_day date, p_platform_day date,
    OUT seq int, OUT budgets uuid[], OUT starts date[]
) LANGUAGE plpgsql AS $$
DECLARE
    v_run guard_guardedrun;
    v_now timestamptz := statement_timestamp();
    v_each numeric;
    v_fits boolean;
    v_visited boolean;
BEGIN
    {ENTER}
    SELECT * INTO v_run FROM guard_guardedrun WHERE tenant_id = p_tenant AND id = p_run FOR NO KEY UPDATE;
    IF NOT FOUND OR v_now < p_from OR v_now >= p_until
       OR v_run.status <> 'running' OR v_run.halt_state <> 'running' OR {AS_OPENED.format("v_run")} <> p_seen
       OR v_run.cost_total + v_run.cost_reserved > p_most_committed
       OR v_run.input_tokens + v_run.output_tokens > p_most_tokens
       OR v_run.calls > p_most_calls OR extract(epoch FROM v_now - v_run.started_at) > p_most_seconds THEN
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM tenants_tenant WHERE id = p_tenant AND timezone = p_zone)
       OR EXISTS (SELECT FROM guard_systemcontrol WHERE tenant_id = p_tenant AND pause <> 'none'
                  AND (deployment_id IS NULL OR deployment_id = v_run.deployment_id))
       OR EXISTS (SELECT FROM guard_budget WHERE tenant_id = p_tenant AND paused_in >= guard_window(period, p_day)
                  AND ref IN (p_tenant, v_run.deployment_id))
       OR (p_message IS NOT NULL AND NOT EXISTS (
            SELECT FROM bus_queuemessage
            WHERE tenant_id = p_tenant AND id = p_message AND fence = p_fence AND leased_until > v_now)) THEN
        RETURN;
    END IF;
    IF p_reserved <> 0 THEN
        IF p_visitor IS NOT NULL THEN
            SELECT visitor_daily_usd INTO v_each FROM guard_spendingpolicy WHERE tenant_id = p_tenant;
        END IF;
        SELECT array_agg(held.id), array_agg(held.start), bool_and(held.fits), bool_or(held.visitor_ref = p_visitor)
            INTO budgets, starts, v_fits, v_visited
        FROM (
            SELECT b.id, w.start, b.visitor_ref, b.paused_in IS DISTINCT FROM w.start AND (
                       coalesce(b.limit_usd, v_each) IS NULL OR coalesce(b.limit_usd, v_each)
                       >= p_reserved + CASE WHEN b.window_start = w.start THEN b.spent + b.reserved ELSE 0 END) AS fits
            FROM guard_budget b
                 CROSS JOIN LATERAL (SELECT greatest(guard_window(b.period, p_day), b.window_start) AS start) AS w
            WHERE b.tenant_id = p_tenant
                  AND b.ref = ANY(ARRAY[p_tenant, v_run.deployment_id, v_run.task_ref, p_visitor])
            ORDER BY b.id FOR NO KEY UPDATE OF b
        ) AS held;
        IF NOT coalesce(v_fits, true) OR (v_each IS NOT NULL AND NOT coalesce(v_visited, false))
           OR guard_platform_room(p_reserved, p_platform_day) <> '' THEN
            RETURN;
        END IF;
    END IF;
    IF guard_admit(p_id, p_run, v_run.seq + 1, p_id::text, p_intent, p_tool, '', p_digest, p_reserved, p_patience,
                   gen_random_uuid(), p_day, budgets, starts, p_platform_day, ARRAY[]::int[]) THEN
        seq := v_run.seq + 1;
        PERFORM audit_append(p_tenant, p_tenant, replace(p_told, '{SEQ}', seq::text));
    END IF;
END $$;
"""
ADMIT_AT_ONCE_REVERSE = "DROP FUNCTION guard_admit_at_once;"
FORWARD = MOVE + ADMIT + SETTLE
REVERSE = """
DROP FUNCTION guard_settle;
DROP FUNCTION guard_admit;
DROP FUNCTION guard_move;
"""
