from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0001_initial'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='apikey',
            options={'base_manager_name': 'objects', 'verbose_name': 'API key'},
        ),
        migrations.AddField(
            model_name='deployment',
            name='environment_keys',
            field=models.BooleanField(default=False, help_text='May its models use the provider keys of this installation, at the expense of whoever runs it?', verbose_name='provider keys of this installation'),
        ),
    ]
