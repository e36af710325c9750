from django.db import migrations

from apps.safety import at_once_sql


class Migration(migrations.Migration):

    dependencies = [
        ('safety', '0004_presses_pushes_take_back'),
        ('tenants', '0050_key_scopes'),
        ('audit', '0004_append_told'),
    ]

    operations = [
        migrations.RunSQL(at_once_sql.AT_ONCE, at_once_sql.AT_ONCE_REVERSE),
    ]
