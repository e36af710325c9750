"""Lets the function that appends to the log accept that a company was closed, opened or moved."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0031_partitions")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
