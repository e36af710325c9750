"""Lets the function that appends to the log accept what is done with contacts and exports of lists."""

from django.db import migrations

from apps.audit.sql import chain


class Migration(migrations.Migration):
    dependencies = [("audit", "0010_answering_programs")]

    operations = [migrations.RunSQL(chain.APPEND, migrations.RunSQL.noop)]
