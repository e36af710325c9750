"""Lets the function that appends to the log accept the event of knowledge gaps."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0005_memories_grow")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
