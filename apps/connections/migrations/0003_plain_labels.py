"""Word the labels of choices plainly. Changes the models' state only, no table."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('connections', '0002_work_is_due_on_the_bus'),
    ]

    operations = [
        migrations.AlterField(
            model_name='connection',
            name='auth_strategy',
            field=models.CharField(choices=[('device_code', 'Code entered at the service'), ('browser_redirect', 'Sign-in at the service'), ('secure_input', 'Secret entered here')], max_length=20),
        ),
        migrations.AlterField(
            model_name='connection',
            name='status',
            field=models.CharField(choices=[('proposed', 'Proposed'), ('connecting', 'Connecting'), ('active', 'Active'), ('paused', 'Paused'), ('failed', 'Not working'), ('removed', 'Removed')], default='proposed', max_length=12),
        ),
        migrations.AlterField(
            model_name='setuprun',
            name='purpose',
            field=models.CharField(choices=[('setup', 'First connection'), ('reconnect', 'Reconnect'), ('widen', 'More access')], max_length=12),
        ),
    ]
