import django.db.models.deletion
from django.db import migrations, models

from apps.gates import append_only


class Migration(migrations.Migration):
    """What stands in versions now leaves the gate, and nothing of it can be rewritten any more."""

    dependencies = [
        ('gates', '0003_first_versions'),
        ('tenants', '0001_initial'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='gate',
            options={'base_manager_name': 'objects', 'ordering': ['name']},
        ),
        migrations.RemoveConstraint(model_name='gate', name='gate_step_with_its_trigger'),
        # The way back fills the column before 0003 says what belongs there.
        migrations.AlterField(
            model_name='gate',
            name='on',
            field=models.CharField(default='every_user_message', max_length=24),
        ),
        migrations.RemoveField(model_name='gate', name='after_step'),
        migrations.RemoveField(model_name='gate', name='allowed_values'),
        migrations.RemoveField(model_name='gate', name='approval_values'),
        migrations.RemoveField(model_name='gate', name='auto_approve'),
        migrations.RemoveField(model_name='gate', name='block'),
        migrations.RemoveField(model_name='gate', name='check_command'),
        migrations.RemoveField(model_name='gate', name='check_expect'),
        migrations.RemoveField(model_name='gate', name='config'),
        migrations.RemoveField(model_name='gate', name='enabled'),
        migrations.RemoveField(model_name='gate', name='extract'),
        migrations.RemoveField(model_name='gate', name='on'),
        migrations.RemoveField(model_name='gate', name='on_block'),
        migrations.RemoveField(model_name='gate', name='order'),
        migrations.RemoveField(model_name='gate', name='promote_to_policy'),
        migrations.RemoveField(model_name='gate', name='provider'),
        migrations.RemoveField(model_name='gate', name='require_approval'),
        migrations.RemoveField(model_name='gate', name='type'),
        migrations.RemoveField(model_name='gate', name='validator'),
        migrations.AlterField(
            model_name='gate',
            name='deployment',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.deployment'),
        ),
        migrations.AlterField(
            model_name='gate',
            name='name',
            field=models.CharField(max_length=80),
        ),
        migrations.AddConstraint(
            model_name='gate',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('active__isnull', False), ('status', 'active')), models.Q(models.Q(('status', 'active'), _negated=True), ('active__isnull', True)), _connector='OR'), name='gate_in_force_has_version'),
        ),
        migrations.AddConstraint(
            model_name='gate',
            constraint=models.CheckConstraint(condition=models.Q(('active__isnull', True), ('active__lte', models.F('newest')), _connector='OR'), name='gate_version_exists'),
        ),
        migrations.RunSQL(append_only.STAY, append_only.STAY_REVERSE),
    ]
