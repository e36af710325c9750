from django.db import migrations

from apps.memory.sql import search


class Migration(migrations.Migration):
    """For databases that were made before `search.SEARCH` chose its candidates alike for collections of every size."""

    dependencies = [("memory", "0002_search_compares_10000")]

    operations = [migrations.RunSQL(search.SEARCH.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"), "")]
