"""Schedules the looks at tool servers, of which the time was a column before."""

from django.db import migrations

from apps.bus.sql.due import schedule_rows, unschedule_rows
from apps.bus.enums import Kind

WATCHED = """
    SELECT tenant_id, id::text, next_look_at FROM toolservers_toolserver server
    WHERE enabled AND NOT removed AND EXISTS (
        SELECT FROM toolservers_outsidetool tool WHERE tool.server_id = server.id AND tool.state = 'accepted'
    )
"""


class Migration(migrations.Migration):
    dependencies = [("toolservers", "0001_squashed"), ("bus", "0002_due_work")]

    operations = [
        migrations.RunSQL(schedule_rows(Kind.TOOL_SERVER_CHECK, WATCHED), unschedule_rows(Kind.TOOL_SERVER_CHECK)),
        migrations.RemoveField(model_name="toolserver", name="next_look_at"),
    ]
