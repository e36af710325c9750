"""Lets the function that appends to the log accept the event of merged memories."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0002_heads")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
