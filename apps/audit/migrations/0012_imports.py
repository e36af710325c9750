"""Lets the function that appends to the log accept imports from other help desks."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0011_contacts")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
