"""Lets the function that appends to the log accept the keys with which programs decide."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0013_api_keys_rotate")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
