from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('safety', '0002_report'),
    ]

    operations = [
        migrations.AddField(
            model_name='hold',
            name='mailed_at',
            field=models.DateTimeField(null=True),
        ),
    ]
