"""Lets the function that appends to the log accept channels and what happens on them."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0015_decision_links")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
