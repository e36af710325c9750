from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('silas_sessions', '0001_initial'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='chronicleentry',
            options={'base_manager_name': 'objects', 'ordering': ['session', 'seq'], 'verbose_name_plural': 'chronicle entries'},
        ),
    ]
