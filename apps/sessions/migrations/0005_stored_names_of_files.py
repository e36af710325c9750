"""Names each visitor's file by what it is stored as; files from before keep their place, by tenant and digest."""

from django.db import migrations, models

NAME_THOSE_FROM_BEFORE = """
UPDATE silas_sessions_visitorfile
   SET stored_name = replace(tenant_id::text, '-', '') || '/' || left(digest, 2) || '/' || digest
 WHERE stored_name = '';
"""


class Migration(migrations.Migration):
    dependencies = [("silas_sessions", "0004_messages_are_accepted_in_python")]

    operations = [
        migrations.AddField("visitorfile", "stored_name", models.CharField(default="", max_length=120), False),
        migrations.RunSQL(NAME_THOSE_FROM_BEFORE, migrations.RunSQL.noop),
        migrations.RemoveIndex("visitorfile", "file_by_digest"),
        migrations.AddIndex("visitorfile", models.Index(fields=["tenant", "stored_name"], name="file_by_stored_name")),
    ]
