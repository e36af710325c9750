"""Lets the function that appends to the log accept requests of staff for assistance."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0022_macros")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
