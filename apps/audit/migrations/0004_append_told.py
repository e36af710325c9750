from django.db import migrations

from apps.audit import chain_sql


class Migration(migrations.Migration):
    dependencies = [("audit", "0003_entries_in_words")]

    operations = [
        migrations.RunSQL(chain_sql.APPEND_TOLD, chain_sql.APPEND_TOLD_REVERSE),
    ]
