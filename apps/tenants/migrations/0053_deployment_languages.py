from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0052_datakey'),
    ]

    operations = [
        migrations.AddField(
            model_name='deployment',
            name='languages',
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
    ]
