from django.db import migrations

from apps.bus import owe_sql


class Migration(migrations.Migration):
    dependencies = [("bus", "0007_upkeep")]

    operations = [migrations.RunSQL(owe_sql.WAITING, owe_sql.WAITING_REVERSE)]
