"""Lets the function that appends to the log accept what members do to memories."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0008_source_changed")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
