"""Lets the function that appends to the log accept that partitions are detached."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0030_sla")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
