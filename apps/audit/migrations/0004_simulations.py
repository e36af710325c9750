"""Lets the function that appends to the log accept the events of simulations."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0003_memories_merged")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
