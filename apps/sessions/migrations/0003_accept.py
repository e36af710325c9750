from django.db import migrations

from apps.sessions import accept_sql


class Migration(migrations.Migration):
    dependencies = [("silas_sessions", "0002_chronicle_entries"), ("bus", "0006_owe"), ("audit", "0004_append_told")]

    operations = [
        migrations.RunSQL(accept_sql.ACCEPT, accept_sql.ACCEPT_REVERSE),
    ]
