"""Lets the function that appends to the log accept questions to the customer about a card."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0027_inbox_rules")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
