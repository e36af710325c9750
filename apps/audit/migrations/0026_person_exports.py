"""Lets the function that appends to the log accept exports of everything about one person."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0025_apps_register_themselves")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
