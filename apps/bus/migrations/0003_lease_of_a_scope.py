from django.db import migrations

from apps.bus import lease_sql


class Migration(migrations.Migration):
    dependencies = [("bus", "0002_typed_messages")]

    operations = [
        migrations.RunSQL(lease_sql.LEASE_OF_SCOPE, lease_sql.LEASE_OF_SCOPE_REVERSE),
    ]
