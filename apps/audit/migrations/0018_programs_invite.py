"""Lets the function that appends to the log accept that programs invite members and resume goals."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [('audit', '0017_oauth')]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
