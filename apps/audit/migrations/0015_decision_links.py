"""Lets the function that appends to the log accept links with which members decide cards."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0014_client_keys")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
