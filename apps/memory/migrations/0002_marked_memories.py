from django.db import migrations, models

from apps.memory.sql import search


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0001_squashed'),
    ]

    operations = [
        migrations.AddField(
            model_name='memoryitem',
            name='marked',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.RunSQL(search.RECALL_MARKED, search.RECALL_MARKED_REVERSE),
    ]
