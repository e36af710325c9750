"""Lets the function that appends to the log accept that API keys are rotated."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0012_imports")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
