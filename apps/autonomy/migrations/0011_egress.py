from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('autonomy', '0010_findings_with_a_state'),
    ]

    operations = [
        migrations.AddField(
            model_name='autonomoussession',
            name='egress',
            field=models.CharField(choices=[('nothing', 'Nothing: only the built-in model, no outside services'), ('anonymous', 'Texts with personal data replaced'), ('full', 'Texts as they are')], db_default='anonymous', default='anonymous', max_length=12),
        ),
        migrations.AddField(
            model_name='autonomysettings',
            name='egress',
            field=models.CharField(choices=[('nothing', 'Nothing: only the built-in model, no outside services'), ('anonymous', 'Texts with personal data replaced'), ('full', 'Texts as they are')], db_default='anonymous', default='anonymous', max_length=12),
        ),
    ]
