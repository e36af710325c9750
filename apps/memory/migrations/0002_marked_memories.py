from django.db import migrations, models

from apps.memory import search_sql


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
        migrations.RunSQL(search_sql.RECALL_MARKED, search_sql.RECALL_MARKED_REVERSE),
    ]
