"""Lets the function that appends to the log accept teams, availability and the priority of conversations."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0020_cards_in_channels")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
