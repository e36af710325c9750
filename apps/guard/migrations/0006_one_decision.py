"""Drops the database functions that admitted and settled calls: both are decided and written in Python alone."""

from django.db import migrations

DROP = """
    DROP FUNCTION IF EXISTS guard_admit_at_once(
        uuid, text, text, text, timestamptz, timestamptz, uuid, bigint, uuid, numeric, bigint, int, int, uuid, uuid,
        text, text, text, numeric, double precision, date, date
    );
    DROP FUNCTION IF EXISTS guard_settle_at_once(
        uuid, text, uuid, text, text, text, boolean, numeric, numeric, int, int, uuid, date, uuid[], date[], date, int[]
    );
    DROP FUNCTION IF EXISTS guard_settle(
        uuid, text, text, text, boolean, numeric, numeric, int, int, uuid, date, uuid[], date[], date, int[]
    );
    DROP FUNCTION IF EXISTS guard_admit(
        uuid, uuid, int, text, text, text, text, text, numeric, double precision, uuid, date, uuid[], date[], date, int[]
    );
    DROP FUNCTION IF EXISTS guard_move(
        guard_toolcall, text, numeric, numeric, uuid, uuid, date, uuid[], date[], date, int[]
    );
"""


class Migration(migrations.Migration):
    dependencies = [("guard", "0005_marked_turn")]

    operations = [migrations.RunSQL(DROP, migrations.RunSQL.noop)]
