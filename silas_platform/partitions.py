"""The partitions of tables that are kept by month: list, make and detach them (`manage.py partitions`).

`extend` runs in every round of retention and after each `migrate`; detaching is an operator's decision, because what is
detached is in no figure any more. A detached table stays in the database, and in backups, until it is dropped by hand.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import date
from itertools import chain, count

from django.db import connection, connections, transaction
from django.db.backends.utils import CursorWrapper

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from kernel.tenancy import platform_scope
from kernel.tenancy.migrations import AS_OWNER
from kernel.tenancy.partitions import UNTIL

OWNER = "owner"
_log = logging.getLogger(__name__)
_LIST = f"""
    SELECT parent.relname, child.relname, {UNTIL.format(child="child")}, pg_total_relation_size(child.oid),
           greatest(child.reltuples, 0)::bigint, pg_relation_size(child.oid) = 0
    FROM pg_class parent
    JOIN pg_inherits link ON link.inhparent = parent.oid JOIN pg_class child ON child.oid = link.inhrelid
    WHERE parent.relkind = 'p' AND parent.relnamespace = 'public'::regnamespace
    ORDER BY parent.relname, 3 NULLS LAST
"""  # noqa: S608 (an expression of ours)
# The column by which a table is divided, and the first day of its oldest partition; NULL when that has no beginning.
_OLDEST = """
    SELECT a.attname, CASE WHEN NOT bool_or(bound LIKE 'FOR VALUES FROM (MINVALUE)%%')
        THEN min(substring(bound from 'FROM [(]''([0-9-]+)''')::date) END
    FROM pg_partitioned_table divided
    JOIN pg_attribute a ON a.attrelid = divided.partrelid AND a.attnum = divided.partattrs[0]
    JOIN pg_inherits link ON link.inhparent = divided.partrelid JOIN pg_class child ON child.oid = link.inhrelid,
    pg_get_expr(child.relpartbound, child.oid) AS bound
    WHERE divided.partrelid = %s::regclass
    GROUP BY a.attname
"""
_ROW_TRIGGERS = """
    SELECT pg_get_triggerdef(oid) FROM pg_trigger
    WHERE tgrelid = %s::regclass AND NOT tgisinternal AND tgtype::int & 1 = 1
"""


@dataclass(frozen=True)
class Partition:
    """`until`: the first day after it; None for the default partition, which holds what no month does. `rows` is
    PostgreSQL's estimate."""

    table: str
    name: str
    until: date | None
    size: int
    rows: int
    is_empty: bool


def list_partitions() -> list[Partition]:
    """Every partition, by table and month, the default one last. Reads the catalog only."""
    with connection.cursor() as cursor:
        cursor.execute(_LIST)
        return [Partition(*row) for row in cursor.fetchall()]


def extend() -> bool:
    """A step of retention: make the partitions of the coming months. There is never more to do."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT partitions_extend()")
        for name in cursor.fetchone()[0]:
            _log.info("partition_made name=%s", name)
    return False


def make() -> list[str]:
    """Make the coming months as the tables' owner, and move what lies in a default partition to its month. Rows older
    than every month, which come with a company from another installation, get one partition for all of them."""
    misplaced = [each for each in list_partitions() if each.until is None and not each.is_empty]
    with transaction.atomic(using=OWNER), connections[OWNER].cursor() as cursor:
        cursor.execute(AS_OWNER)
        for each in misplaced:
            cursor.execute(f"ALTER TABLE {each.table} DETACH PARTITION {each.name}")
            # Its name is taken by the new default partition.
            cursor.execute(f"ALTER TABLE {each.name} RENAME TO {each.name}_old")
        cursor.execute("SELECT partitions_extend()")
        (made,) = cursor.fetchone()
        for each in misplaced:
            made += _add_oldest(cursor, each.table, f"{each.name}_old")
            cursor.execute(f"INSERT INTO {each.table} SELECT * FROM {each.name}_old")  # noqa: S608 (names of the catalog)
            cursor.execute(f"DROP TABLE {each.name}_old")
    return [str(name) for name in made]


def _add_oldest(cursor: CursorWrapper, table: str, rows: str) -> list[str]:
    """Make a partition for the rows that are older than every partition of the table, if there are any; its name."""
    cursor.execute(_OLDEST, [table])
    column, oldest = cursor.fetchone()
    cursor.execute(f"SELECT EXISTS (SELECT FROM {rows} WHERE {column} < %s)", [oldest])  # noqa: S608 (as above)
    if not cursor.fetchone()[0]:
        return []
    cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    taken = {name for (name,) in cursor.fetchall()}  # also by partitions that were detached
    before = f"{table}_before_{oldest:%Y_%m}"
    name = next(name for name in chain([before], (f"{before}_{number}" for number in count(2))) if name not in taken)
    bound = f"FOR VALUES FROM (MINVALUE) TO ('{oldest}')"
    cursor.execute("SELECT partitions_add(%s, %s, %s)", [table, name, bound])
    return [name]


def older_than(month: date) -> list[Partition]:
    """The partitions whose days are all before this one."""
    return [each for each in list_partitions() if each.until is not None and each.until <= month]


def detach(partition: Partition, *, actor: str) -> int:
    """Make the partition a table of its own and record it; the number of its rows."""
    with platform_scope("partitions"), connections[OWNER].cursor() as cursor:
        with transaction.atomic(using=OWNER):
            cursor.execute(AS_OWNER)
            cursor.execute(f"SELECT count(*) FROM {partition.name}")  # noqa: S608 (as above)
            (rows,) = cursor.fetchone()
        with transaction.atomic(using=OWNER):
            cursor.execute(AS_OWNER)
            cursor.execute(_ROW_TRIGGERS, [partition.table])
            triggers = [definition for (definition,) in cursor.fetchall()]
            cursor.execute(f"ALTER TABLE {partition.table} DETACH PARTITION {partition.name}")
            # Detaching drops the triggers that a partition has from its table. Without them the rows could be changed.
            for definition in triggers:
                cursor.execute(definition.replace(f".{partition.table} ", f".{partition.name} "))
        record(AuditEvent.PARTITION_DETACHED, actor=actor, data={"partition": partition.name, "rows": rows})
    return int(rows)
