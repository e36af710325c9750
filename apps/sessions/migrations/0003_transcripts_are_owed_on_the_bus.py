"""Owes the transcripts that wait on the bus, which carries when they are due."""

from django.db import migrations, models
from django.db.models.functions import Now

from apps.bus.sql.due import schedule_rows, unschedule_rows
from apps.bus.enums import Kind

OWED = "SELECT tenant_id, id::text, due_at FROM silas_sessions_transcriptrequest WHERE state = 'owed'"


class Migration(migrations.Migration):
    dependencies = [("silas_sessions", "0002_paused_turns"), ("bus", "0002_due_work")]

    operations = [
        migrations.RunSQL("DROP FUNCTION IF EXISTS sessions_owing_transcripts();", migrations.RunSQL.noop),
        migrations.RunSQL(schedule_rows(Kind.TRANSCRIPT_MAIL, OWED), unschedule_rows(Kind.TRANSCRIPT_MAIL)),
        migrations.RemoveIndex(model_name="transcriptrequest", name="transcript_due"),
        # So that the way back fills the column.
        migrations.AlterField("transcriptrequest", "due_at", models.DateTimeField(db_default=Now())),
        migrations.RemoveField(model_name="transcriptrequest", name="due_at"),
    ]
