"""Word the labels of choices plainly. Changes the models' state only, no table."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('skills', '0004_trials_on_the_bus'),
    ]

    operations = [
        migrations.AlterField(
            model_name='skillpackage',
            name='state',
            field=models.CharField(choices=[('waiting', 'Waiting for review'), ('taken', 'Proposed'), ('refused', 'Refused')], default='waiting', max_length=10),
        ),
        migrations.AlterField(
            model_name='skillversion',
            name='source',
            field=models.CharField(choices=[('bundled', 'Built-in'), ('folder', 'A folder'), ('archive', 'An archive'), ('git', 'A git repository'), ('maker', 'Written here'), ('package', 'A signed package')], max_length=12),
        ),
        migrations.AlterField(
            model_name='skillversion',
            name='status',
            field=models.CharField(choices=[('proposed', 'Waiting for approval'), ('active', 'In use'), ('disabled', 'Disabled'), ('withdrawn', 'Withdrawn')], max_length=12),
        ),
    ]
