from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('simulations', '0001_initial'),
    ]

    operations = [
        migrations.RenameField(
            model_name='scenario',
            old_name='secret',
            new_name='secrets',
        ),
        migrations.AddField(
            model_name='scenario',
            name='player',
            field=models.CharField(choices=[('script', 'A script'), ('model', 'A model')], default='script', max_length=8),
        ),
        migrations.AddField(
            model_name='simulationresult',
            name='ending',
            field=models.CharField(blank=True, choices=[('goal_reached', 'The visitor says they have what they wanted'), ('gave_up', 'The visitor gave up'), ('turn_limit', 'All turns were used'), ('budget', 'The budget was spent')], max_length=16),
        ),
        migrations.AddField(
            model_name='simulationresult',
            name='player',
            field=models.CharField(blank=True, max_length=120),
        ),
    ]
