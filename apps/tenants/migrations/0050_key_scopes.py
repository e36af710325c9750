from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0040_retention'),
    ]

    operations = [
        migrations.AddField(
            model_name='apikey',
            name='scopes',
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
    ]
