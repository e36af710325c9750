"""Lets the function that appends to the log accept the events of promoted, archived and restored memories."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0004_simulations")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
