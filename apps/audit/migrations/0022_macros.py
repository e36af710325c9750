"""Lets the function that appends to the log accept macros."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0021_teams")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
