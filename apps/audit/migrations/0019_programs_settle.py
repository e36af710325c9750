"""Lets the function that appends to the log accept that programs dismiss proposals and preferences."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [('audit', '0018_programs_invite')]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
