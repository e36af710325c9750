from django.db import migrations

from apps.autonomy import proposals_sql


class Migration(migrations.Migration):

    dependencies = [
        ('autonomy', '0005_delegated'),
    ]

    operations = [
        migrations.RunSQL(proposals_sql.BEGIN, proposals_sql.BEGIN_REVERSE),
    ]
