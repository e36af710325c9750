"""Lets the function that appends to the log accept the events of releases."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0006_gap_changed")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
