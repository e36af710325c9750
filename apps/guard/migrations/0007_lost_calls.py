"""Finds calls whose process died for all tenants at once, by a standing message of the installation."""

from django.db import migrations, models

from apps.bus.sql.due import schedule_rows, unschedule_rows
from apps.bus.enums import Kind
from apps.guard.sql import lost_calls

INSTALLATION = "SELECT '00000000-0000-0000-0000-000000000000'::uuid, 'lost_calls', statement_timestamp()"


class Migration(migrations.Migration):
    dependencies = [("guard", "0006_one_decision"), ("bus", "0002_due_work")]

    operations = [
        migrations.RemoveIndex(model_name="toolcall", name="guard_call_open"),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("state", "admitted")),
                fields=["deadline"],
                include=("tenant",),
                name="guard_call_overdue",
            ),
        ),
        migrations.RunSQL(lost_calls.LOST, lost_calls.LOST_REVERSE),
        migrations.RunSQL(schedule_rows(Kind.LOST_CALLS, INSTALLATION), unschedule_rows(Kind.LOST_CALLS)),
    ]
