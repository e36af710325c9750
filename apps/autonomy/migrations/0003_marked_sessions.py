from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('autonomy', '0002_notices_of_every_end'),
    ]

    operations = [
        migrations.AddField(
            model_name='autonomoussession',
            name='marked',
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
