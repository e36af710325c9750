"""Lets the function that appends to the log accept the event of websites that are read again."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0007_releases")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
