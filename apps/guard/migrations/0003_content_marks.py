from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('guard', '0002_admit_at_once'),
    ]

    operations = [
        migrations.AddField(
            model_name='guardedrun',
            name='content_marks',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
    ]
