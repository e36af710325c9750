"""Schedules the ends of executions that may fall silent and of pauses that nobody answers."""

from django.conf import settings
from django.db import migrations

from apps.bus.sql.due import schedule_rows, unschedule_rows
from apps.bus.enums import Kind

OPEN = f"""
    SELECT tenant_id, id::text, last_at + make_interval(secs => {settings.SAFETY_IDLE_SECONDS})
    FROM safety_execution WHERE status = 'running'
    UNION ALL
    SELECT hold.tenant_id, hold.id::text, challenge.expires_at FROM safety_hold hold
    JOIN safety_challenge challenge ON challenge.hold_id = hold.id AND challenge.state = 'pending'
    WHERE hold.kind = 'verify' AND hold.state = 'open'
"""  # noqa: S608 (a number of the settings)


class Migration(migrations.Migration):
    dependencies = [("safety", "0003_alerts_are_owed_on_the_bus"), ("bus", "0002_due_work")]

    operations = [migrations.RunSQL(schedule_rows(Kind.SAFETY_EXPIRY, OPEN), unschedule_rows(Kind.SAFETY_EXPIRY))]
