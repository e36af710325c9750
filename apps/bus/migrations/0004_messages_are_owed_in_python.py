"""Drops the database functions that counted and owed a visitor's messages: both are done in Python."""

from django.db import migrations

DROP = """
    DROP FUNCTION IF EXISTS bus_pending(uuid, text, text);
    DROP FUNCTION IF EXISTS bus_waiting(uuid, text, bigint);
    DROP FUNCTION IF EXISTS bus_owe(uuid, text, text, text, text, text, text, text, jsonb);
"""


class Migration(migrations.Migration):
    dependencies = [("bus", "0003_standing_rows")]

    operations = [migrations.RunSQL(DROP, migrations.RunSQL.noop)]
