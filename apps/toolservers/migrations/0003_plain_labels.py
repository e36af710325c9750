"""Word the labels of choices plainly. Changes the models' state only, no table."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('toolservers', '0002_looks_are_due_on_the_bus'),
    ]

    operations = [
        migrations.AlterField(
            model_name='outsidetool',
            name='state',
            field=models.CharField(choices=[('new', 'Not reviewed'), ('accepted', 'In use'), ('suspended', 'Suspended until reviewed')], default='new', max_length=10),
        ),
    ]
