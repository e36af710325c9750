from django.db import migrations

from apps.memory.sql import search


class Migration(migrations.Migration):
    """For databases that were made before `search.SEARCH` compared up to 10,000 chunks exactly."""

    dependencies = [("memory", "0001_initial")]

    operations = [migrations.RunSQL(search.SEARCH.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"), "")]
