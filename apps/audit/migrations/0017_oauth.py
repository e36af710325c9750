"""Lets the function that appends to the log accept apps of third parties."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0016_channels")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
