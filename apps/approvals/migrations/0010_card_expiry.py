"""Schedules the time-out of cards that wait; it was found by a sweep before."""

from django.db import migrations

from apps.bus.sql.due import schedule_rows, unschedule_rows
from apps.bus.enums import Kind

WAITING = "SELECT tenant_id, id::text, expires_at FROM approvals_card WHERE status IN ('open', 'assigned')"


class Migration(migrations.Migration):
    dependencies = [("approvals", "0009_alerts_are_owed_on_the_bus"), ("bus", "0002_due_work")]

    operations = [
        migrations.RunSQL(schedule_rows(Kind.CARD_EXPIRY, WAITING), unschedule_rows(Kind.CARD_EXPIRY)),
    ]
