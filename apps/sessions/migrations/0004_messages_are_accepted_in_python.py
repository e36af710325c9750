"""Drops the database function that accepted a visitor's message: `apps.sessions.services.accept_message` does it."""

from django.db import migrations

DROP = """
    DROP FUNCTION IF EXISTS sessions_accept(
        uuid, uuid, uuid, text, text, text, timestamptz, text, bigint, bigint, bigint, text, text
    );
"""


class Migration(migrations.Migration):
    dependencies = [("silas_sessions", "0003_transcripts_are_owed_on_the_bus")]

    operations = [migrations.RunSQL(DROP, migrations.RunSQL.noop)]
