from django.db import migrations

from apps.memory.sql import search


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0009_graph'),
    ]

    operations = [
        migrations.RunSQL(search.RECALL_COMPANY, search.RECALL_COMPANY_REVERSE),
    ]
