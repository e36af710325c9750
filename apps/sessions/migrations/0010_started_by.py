from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('silas_sessions', '0009_text_of_files'),
    ]

    operations = [
        migrations.AddField(
            model_name='chatsession',
            name='started_by',
            field=models.CharField(blank=True, db_default='', default='', max_length=80),
        ),
    ]
