"""SQL that makes the partitions of the coming months, for every table that `PartitionByMonth` divided.

The upkeep runs in a role that owns nothing and may create nothing, so `partitions_extend` has its owner's rights. It
takes no argument, so that a caller can only make what is made anyway; `partitions_add`, which it calls, has the
caller's.
"""

from __future__ import annotations

from kernel.tenancy.migrations import RowSecurity

MONTHS_AHEAD = 3
# The end of what a partition holds, as the catalog says it; NULL for the default partition.
UNTIL = "substring(pg_catalog.pg_get_expr({child}.relpartbound, {child}.oid) from 'TO [(]''([0-9-]+)''')::date"

# Months are named `<table>_2027_01`. A month whose rows already lie in the default partition cannot be attached, nor
# any after it, since what follows is made from the last end: `manage.py partitions make` moves such rows.
# Partitions are read and written through their table only, so the roles get no rights on them.
EXTEND = f"""
CREATE OR REPLACE FUNCTION public.partitions_add(p_table text, p_name text, p_bound text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    v_trigger text;
BEGIN
    EXECUTE format('CREATE TABLE public.%I (LIKE public.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', p_name, p_table);
    EXECUTE format($sql${RowSecurity("%1$s").sql}$sql$, p_name);
    EXECUTE format('REVOKE ALL ON public.%I FROM silas_app, silas_work', p_name);
    EXECUTE format('ALTER TABLE public.%I ATTACH PARTITION public.%I %s', p_table, p_name, p_bound);
    -- Triggers of rows come with the table; those of statements do not.
    FOR v_trigger IN
        SELECT pg_catalog.pg_get_triggerdef(t.oid) FROM pg_catalog.pg_trigger t
        WHERE t.tgrelid = format('public.%I', p_table)::regclass AND NOT t.tgisinternal AND t.tgtype::int & 1 = 0
    LOOP
        EXECUTE replace(v_trigger, format('.%I ', p_table), format('.%I ', p_name));
    END LOOP;
END $$;
CREATE OR REPLACE FUNCTION public.partitions_extend() RETURNS text[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
    v_table record;
    v_new record;
    v_made text[] := '{{}}';
BEGIN
    FOR v_table IN
        SELECT parent.oid, parent.relname::text AS name, max({UNTIL.format(child="child")}) AS until,
               bool_or(pg_catalog.pg_get_expr(child.relpartbound, child.oid) = 'DEFAULT') AS has_default
        FROM pg_catalog.pg_class parent
        JOIN pg_catalog.pg_inherits link ON link.inhparent = parent.oid
        JOIN pg_catalog.pg_class child ON child.oid = link.inhrelid
        WHERE parent.relkind = 'p' AND parent.relnamespace = 'public'::regnamespace
        GROUP BY parent.oid, parent.relname
    LOOP
        FOR v_new IN
            SELECT v_table.name || '_' || to_char(since, 'YYYY_MM') AS name,
                   format('FOR VALUES FROM (%L) TO (%L)', since::date, (since + interval '1 month')::date) AS bound
            FROM generate_series(
                v_table.until::timestamp, date_trunc('month', current_date) + interval '{MONTHS_AHEAD} months',
                interval '1 month'
            ) AS since
            UNION ALL
            SELECT v_table.name || '_default', 'DEFAULT' WHERE NOT v_table.has_default
        LOOP
            BEGIN
                PERFORM public.partitions_add(v_table.name, v_new.name, v_new.bound);
            EXCEPTION WHEN check_violation THEN
                EXIT;
            END;
            v_made := v_made || v_new.name;
        END LOOP;
    END LOOP;
    RETURN v_made;
END $$;
"""  # noqa: S608 (texts of ours)
