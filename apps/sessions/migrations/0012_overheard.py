from django.db import migrations, models

from apps.sessions import accept_sql

BEFORE = accept_sql.ACCEPT_REVERSE.replace("DROP FUNCTION", "DROP FUNCTION IF EXISTS")


class Migration(migrations.Migration):
    """What is said to a person is owed a look of the gates. A database made now has the function already."""

    dependencies = [("silas_sessions", "0011_turn_read_as"), ("tenants", "0005_opening_hours")]

    operations = [
        migrations.RemoveIndex(model_name="turn", name="turn_by_session"),
        migrations.AddIndex(
            model_name="turn", index=models.Index(fields=["session", "message_seq"], name="turn_by_message")
        ),
        migrations.RunSQL(BEFORE + accept_sql.ACCEPT, migrations.RunSQL.noop),
    ]
