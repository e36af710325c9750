from django.db import migrations

from apps.audit import chain_sql


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL(chain_sql.GROW, chain_sql.GROW_REVERSE),
        migrations.RunSQL(chain_sql.FIND, chain_sql.FIND_REVERSE),
    ]
