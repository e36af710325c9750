"""SQL functions by which a tenant's transaction checks and charges the installation's own budgets.

Both bypass row security for their own duration only, with their owner's rights, lock in the order of ids, after the
tenant's own budgets, and return only a period or a threshold, never an amount.
"""

from kernel.tenancy.migrations import SEE_ALL, SEE_AS_BEFORE

# A row of an earlier window counts as 0; one of a later window is not changed.
ROOM = f"""
CREATE FUNCTION guard_platform_room(p_estimate numeric, p_day date) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    v_before text;
    v_row record;
    v_full text := '';
BEGIN
    {SEE_ALL}
    FOR v_row IN SELECT period, limit_usd, window_start, spent + reserved AS committed
                 FROM public.guard_platformbudget ORDER BY id FOR NO KEY UPDATE LOOP
        IF p_estimate > v_row.limit_usd - (
            CASE WHEN v_row.window_start = public.guard_window(v_row.period, p_day) THEN v_row.committed ELSE 0 END
        ) THEN
            v_full := CASE WHEN v_full = 'day' THEN v_full ELSE v_row.period END;
        END IF;
    END LOOP;
    {SEE_AS_BEFORE}
    RETURN v_full;
END $$;
"""
MOVE = f"""
CREATE FUNCTION guard_platform_move(p_reserved numeric, p_spent numeric, p_day date, p_thresholds int[])
RETURNS TABLE (of_period text, passed int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    v_before text;
BEGIN
    {SEE_ALL}
    RETURN QUERY
    WITH held AS MATERIALIZED (
        SELECT b.id, public.guard_window(b.period, p_day) AS start,
               b.window_start = public.guard_window(b.period, p_day) AS same, b.spent, b.reserved, b.alerted
        FROM public.guard_platformbudget b ORDER BY b.id FOR NO KEY UPDATE
    ), moved AS (
        UPDATE public.guard_platformbudget AS b
        SET reserved = p_reserved + CASE WHEN held.same THEN held.reserved ELSE 0 END,
            spent = p_spent + CASE WHEN held.same THEN held.spent ELSE 0 END,
            alerted = greatest(CASE WHEN held.same THEN held.alerted ELSE 0 END, public.guard_level(
                p_spent + CASE WHEN held.same THEN held.spent ELSE 0 END, b.limit_usd, p_thresholds)),
            window_start = held.start
        FROM held WHERE b.id = held.id AND (b.window_start IS NULL OR b.window_start <= held.start)
        RETURNING b.period, b.alerted, CASE WHEN held.same THEN held.alerted ELSE 0 END AS before
    )
    SELECT moved.period::text, moved.alerted::int FROM moved WHERE moved.alerted > moved.before;
    {SEE_AS_BEFORE}
END $$;
"""
# The start of a window, and the highest threshold (percent) that an amount has reached.
HELPERS = """
CREATE FUNCTION guard_window(p_period text, p_day date) RETURNS date LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN p_period = 'month' THEN date_trunc('month', p_day)::date ELSE p_day END
$$;
CREATE FUNCTION guard_level(p_spent numeric, p_limit numeric, p_thresholds int[]) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(max(t), 0) FROM unnest(p_thresholds) AS t WHERE p_spent * 100 >= p_limit * t
$$;
"""
FORWARD = HELPERS + ROOM + MOVE
REVERSE = """
DROP FUNCTION guard_platform_move;
DROP FUNCTION guard_platform_room;
DROP FUNCTION guard_level;
DROP FUNCTION guard_window;
"""
