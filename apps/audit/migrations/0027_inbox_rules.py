"""Lets the function that appends to the log accept what inbox rules do."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0026_person_exports")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
