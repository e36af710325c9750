"""Owes the outbox's rows that wait on the bus, which carries when they are due."""

from django.db import migrations

from apps.bus.sql.due import schedule_rows, unschedule_rows
from apps.bus.enums import Kind

WAITING = "SELECT tenant_id, id::text, due_at FROM autonomy_outbox WHERE state = 'waiting'"


class Migration(migrations.Migration):
    dependencies = [("autonomy", "0004_set_aside_tells_owners"), ("bus", "0002_due_work")]

    operations = [
        migrations.RunSQL("DROP FUNCTION IF EXISTS autonomy_owing_tenants();", migrations.RunSQL.noop),
        migrations.RunSQL(schedule_rows(Kind.OUTBOX_DELIVERY, WAITING), unschedule_rows(Kind.OUTBOX_DELIVERY)),
        migrations.RemoveIndex(model_name="outbox", name="autonomy_outbox_due"),
        migrations.RemoveField(model_name="outbox", name="due_at"),
    ]
