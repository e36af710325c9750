from django.db import migrations

from apps.guard import moves_sql


class Migration(migrations.Migration):

    dependencies = [
        ('guard', '0001_squashed'),
        ('audit', '0001_squashed'),
        ('bus', '0001_squashed'),
    ]

    operations = [
        migrations.RunSQL(moves_sql.ADMIT_AT_ONCE, moves_sql.ADMIT_AT_ONCE_REVERSE),
    ]
