"""Lets the function that appends to the log accept apps that register themselves."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0024_apps_change")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
