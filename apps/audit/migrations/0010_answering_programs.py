"""Lets the function that appends to the log accept that programs answer visitors."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0009_curated_memories")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
