from django.db import migrations

from apps.sessions import accept_sql

# A database made before has the function without the tenant's bound; one made now has it as it is.
BEFORE = "DROP FUNCTION IF EXISTS sessions_accept(uuid, uuid, uuid, text, text, text, timestamptz, text, bigint, bigint, text);"
NOW = accept_sql.ACCEPT_REVERSE.replace("DROP FUNCTION", "DROP FUNCTION IF EXISTS")


class Migration(migrations.Migration):
    dependencies = [("silas_sessions", "0006_access_levels"), ("bus", "0008_waiting")]

    operations = [migrations.RunSQL(BEFORE + NOW + accept_sql.ACCEPT, migrations.RunSQL.noop)]
