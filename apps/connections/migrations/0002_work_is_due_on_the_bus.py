"""Hands over to the bus what workers owe connections: checks, discoveries, set-ups and the clean-up of the keyring."""

from django.db import migrations

from apps.bus.sql.due import schedule_rows, unschedule_rows
from apps.bus.enums import Kind

OWED = {
    Kind.CONNECTION_CHECK: """
        SELECT tenant_id, id::text, next_check_at FROM connections_connection
        WHERE status = 'active' AND next_check_at IS NOT NULL
    """,
    Kind.CONNECTION_DISCOVERY: """
        SELECT tenant_id, id::text, statement_timestamp() FROM connections_connection
        WHERE status = 'proposed' AND discovering
    """,
    # A conversation that was held while the platform was updated fails with its first delivery.
    Kind.CONNECTION_SETUP: """
        SELECT tenant_id, id::text,
               CASE WHEN state = 'waiting' THEN coalesce(leased_until, created_at) ELSE statement_timestamp() END
        FROM connections_setuprun WHERE ended_at IS NULL
    """,
    Kind.KEYRING_CLEANUP: "SELECT '00000000-0000-0000-0000-000000000000'::uuid, 'keyring', statement_timestamp()",
}


class Migration(migrations.Migration):
    dependencies = [("connections", "0001_squashed"), ("bus", "0002_due_work")]

    operations = [
        *(migrations.RunSQL(schedule_rows(kind, rows), unschedule_rows(kind)) for kind, rows in OWED.items()),
        migrations.RemoveIndex(model_name="connection", name="connection_due"),
        migrations.RemoveField(model_name="connection", name="leased_by"),
        migrations.RemoveField(model_name="connection", name="leased_until"),
        migrations.RemoveField(model_name="setuprun", name="leased_by"),
        migrations.RenameField(model_name="setuprun", old_name="leased_until", new_name="begins_at"),
    ]
