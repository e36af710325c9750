"""Lets the function that appends to the log accept cards in channels and the accounts of those who decide them."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0019_programs_settle")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
