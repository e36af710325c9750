from django.db import migrations

from apps.autonomy import tick_sql


class Migration(migrations.Migration):

    dependencies = [
        ('autonomy', '0006_proposals_begin'),
    ]

    operations = [
        migrations.RunSQL(tick_sql.OWING_TENANTS, tick_sql.OWING_TENANTS_REVERSE),
    ]
