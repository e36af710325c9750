from django.db import migrations

from apps.guard import moves_sql


class Migration(migrations.Migration):

    dependencies = [
        ('guard', '0007_outside_tools'),
    ]

    operations = [
        migrations.RunSQL(moves_sql.FORWARD, moves_sql.REVERSE),
    ]
