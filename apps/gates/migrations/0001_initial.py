import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models

from apps.gates import append_only
from kernel.tenancy.migrations import RowSecurity, Tables


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("gates", "0001_squashed"),
        ("gates", "0002_reworded_labels"),
        ("gates", "0002_versions"),
        ("gates", "0003_first_versions"),
        ("gates", "0004_versions_say_it"),
    ]

    dependencies = [
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='Gate',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=80)),
                    ('status', models.CharField(choices=[('draft', 'Draft'), ('active', 'Active'), ('retired', 'Retired')], default='draft', max_length=8)),
                    ('active', models.PositiveIntegerField(blank=True, null=True, verbose_name='active version')),
                    ('newest', models.PositiveIntegerField(default=0, verbose_name='newest version')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('deployment', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.deployment')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['name'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'deployment', 'name'), name='gate_name_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(models.Q(('active__isnull', False), ('status', 'active')), models.Q(models.Q(('status', 'active'), _negated=True), ('active__isnull', True)), _connector='OR'), name='gate_in_force_has_version'), models.CheckConstraint(condition=models.Q(('active__isnull', True), ('active__lte', models.F('newest')), _connector='OR'), name='gate_version_exists')],
                },
            ),
            migrations.CreateModel(
                name='GateVersion',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('number', models.PositiveIntegerField()),
                    ('order', models.PositiveSmallIntegerField(default=100)),
                    ('content', models.JSONField()),
                    ('restores', models.PositiveIntegerField(null=True)),
                    ('written_by', models.CharField(max_length=80)),
                    ('note', models.CharField(blank=True, max_length=200)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('gate', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='versions', to='gates.gate')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['gate', '-number'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('gate', 'number'), name='gate_version_once'), models.CheckConstraint(condition=models.Q(('number__gte', 1)), name='gate_version_counts')],
                },
            ),
        ),
        RowSecurity("gates_gate"),
        RowSecurity("gates_gateversion"),
        migrations.RunSQL(append_only.STAY, append_only.STAY_REVERSE),
    ]
