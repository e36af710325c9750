from django.db import migrations

from apps.guard import moves_sql


class Migration(migrations.Migration):

    dependencies = [
        ('guard', '0010_settle_at_once'),
        ('audit', '0004_append_told'),
        ('bus', '0011_connection_owed'),
    ]

    operations = [
        migrations.RunSQL(moves_sql.ADMIT_AT_ONCE, moves_sql.ADMIT_AT_ONCE_REVERSE),
    ]
