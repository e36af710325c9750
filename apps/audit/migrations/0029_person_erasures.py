"""Lets the function that appends to the log accept the erasure of a person's data."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0028_card_questions")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
