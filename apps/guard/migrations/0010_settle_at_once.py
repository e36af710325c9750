from django.db import migrations

from apps.guard import moves_sql


class Migration(migrations.Migration):

    dependencies = [
        ('guard', '0009_run_connection'),
        ('audit', '0004_append_told'),
    ]

    operations = [
        migrations.RunSQL(moves_sql.SETTLE_AT_ONCE, moves_sql.SETTLE_AT_ONCE_REVERSE),
    ]
