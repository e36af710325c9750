from django.db import migrations

from apps.sessions.desk.desk_sql import CONTACT, CONTACT_REVERSE


class Migration(migrations.Migration):
    """Contacts are found by pieces of their names; written once for every conversation that there is."""

    dependencies = [
        ("silas_sessions", "0042_snoozed_until_reply"),
    ]

    operations = [
        migrations.RunSQL(CONTACT, CONTACT_REVERSE),
    ]
