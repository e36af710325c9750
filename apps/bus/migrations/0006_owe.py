from django.db import migrations

from apps.bus import owe_sql


class Migration(migrations.Migration):
    dependencies = [("bus", "0005_dropped")]

    operations = [
        migrations.RunSQL(owe_sql.PENDING, owe_sql.PENDING_REVERSE),
        migrations.RunSQL(owe_sql.OWE, owe_sql.OWE_REVERSE),
    ]
