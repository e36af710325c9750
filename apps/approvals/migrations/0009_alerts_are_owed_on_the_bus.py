"""Owes a look at every card that waits, by which members are told of it; it was found by a sweep before."""

from django.db import migrations

from apps.bus.sql.due import schedule_rows, unschedule_rows
from apps.bus.enums import Kind

WAITING = "SELECT tenant_id, id::text, statement_timestamp() FROM approvals_card WHERE status IN ('open', 'assigned')"


class Migration(migrations.Migration):
    dependencies = [("approvals", "0008_card_outdated"), ("bus", "0002_due_work")]

    operations = [
        migrations.RunSQL("DROP FUNCTION IF EXISTS approvals_alerting_tenants();", migrations.RunSQL.noop),
        migrations.RunSQL(schedule_rows(Kind.CARD_ALERT, WAITING), unschedule_rows(Kind.CARD_ALERT)),
    ]
