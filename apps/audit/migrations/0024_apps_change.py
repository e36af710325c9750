"""Lets the function that appends to the log accept changes of apps of third parties."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0023_staff_assistance")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
