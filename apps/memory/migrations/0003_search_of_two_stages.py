from django.db import migrations

from apps.memory.sql import search


class Migration(migrations.Migration):
    """For databases that were made before `search.SEARCH` chose candidates among up to 2000 chunks too."""

    dependencies = [("memory", "0002_search_compares_10000")]

    operations = [migrations.RunSQL(search.SEARCH.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"), "")]
