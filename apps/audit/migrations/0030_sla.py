"""Lets the function that appends to the log accept what SLA policies do."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0029_person_erasures")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
