from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('guard', '0004_reserve_tokens'),
    ]

    operations = [
        migrations.AddField(
            model_name='guardedrun',
            name='marked_turn',
            field=models.UUIDField(blank=True, null=True),
        ),
    ]
