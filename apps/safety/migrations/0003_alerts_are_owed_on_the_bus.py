"""Owes the notices of agents that wait, and the letters with their codes, which sweeps found before."""

from django.db import migrations

from apps.bus.sql.due import schedule_rows, unschedule_rows
from apps.bus.enums import Kind

UNTOLD = """
    SELECT DISTINCT tenant_id, 'holds', statement_timestamp() FROM safety_hold
    WHERE state = 'open' AND pushed_at IS NULL
"""
# Carried out only where the installation wants such letters.
UNMAILED = """
    SELECT tenant_id, id::text, statement_timestamp() FROM safety_hold
    WHERE state = 'open' AND mailed_at IS NULL AND kind <> 'confirm'
"""


class Migration(migrations.Migration):
    dependencies = [("safety", "0002_step_window"), ("bus", "0002_due_work")]

    operations = [
        migrations.RunSQL("DROP FUNCTION IF EXISTS safety_alerting_tenants();", migrations.RunSQL.noop),
        migrations.RunSQL(schedule_rows(Kind.HOLD_ALERT, UNTOLD), unschedule_rows(Kind.HOLD_ALERT)),
        migrations.RunSQL(schedule_rows(Kind.SAFETY_CODE_MAIL, UNMAILED), unschedule_rows(Kind.SAFETY_CODE_MAIL)),
    ]
