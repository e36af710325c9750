import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from decimal import Decimal
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity, Tables


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("simulations", "0002_model_players"),
    ]

    dependencies = [
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='SimulationCopy',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('copy_tenant_id', models.UUIDField(unique=True)),
                    ('copy_deployment_id', models.UUIDField(unique=True)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('refreshed_at', models.DateTimeField(null=True)),
                    ('deployment', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.deployment')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'verbose_name_plural': 'simulation copies',
                    'abstract': False,
                    'base_manager_name': 'objects',
                },
            ),
            migrations.CreateModel(
                name='SimulationSuite',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=80)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.deployment')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['name'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'deployment', 'name'), name='simulation_suite_once')],
                },
            ),
            migrations.CreateModel(
                name='SimulationRun',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('overrides', models.JSONField(default=dict)),
                    ('snapshot', models.CharField(blank=True, max_length=64)),
                    ('status', models.CharField(choices=[('queued', 'Waiting'), ('running', 'Running'), ('finished', 'Finished'), ('stopped', 'Stopped'), ('failed', 'Could not be run')], default='queued', max_length=8)),
                    ('reason', models.CharField(blank=True, max_length=80)),
                    ('passed', models.BooleanField(null=True)),
                    ('budget_usd', models.DecimalField(decimal_places=6, max_digits=12, null=True)),
                    ('lacks', models.JSONField(default=list)),
                    ('by', models.CharField(max_length=80)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('started_at', models.DateTimeField(null=True)),
                    ('finished_at', models.DateTimeField(null=True)),
                    ('compared_with', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='simulations.simulationrun')),
                    ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.deployment')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('suite', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='simulations.simulationsuite')),
                ],
                options={
                    'ordering': ['-created_at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(fields=['tenant', 'deployment', '-created_at'], name='simulation_run_by_age')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('status', 'running')), fields=('deployment',), name='simulation_one_at_a_time'), models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', True), ('passed__isnull', True), ('status__in', ('queued', 'running'))), models.Q(models.Q(('status__in', ('queued', 'running')), _negated=True), ('finished_at__isnull', False), ('passed__isnull', False)), _connector='OR'), name='simulation_ends_with_a_result')],
                },
            ),
            migrations.CreateModel(
                name='Scenario',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=160)),
                    ('persona', models.TextField(blank=True)),
                    ('goal', models.TextField(blank=True)),
                    ('secrets', models.TextField(blank=True)),
                    ('lines', models.JSONField(default=list)),
                    ('checks', models.JSONField(default=list)),
                    ('model', models.CharField(blank=True, max_length=120)),
                    ('most_turns', models.PositiveSmallIntegerField(default=6)),
                    ('reviewer', models.CharField(choices=[('none', 'Leaves cards open'), ('approve', 'Approves cards'), ('decline', 'Declines cards')], default='none', max_length=8)),
                    ('origin', models.CharField(choices=[('written', 'Written by hand'), ('conversation', 'A conversation'), ('document', 'A document'), ('incident', 'An incident'), ('attacks', 'The catalogue of attacks')], default='written', max_length=12)),
                    ('origin_ref', models.CharField(blank=True, max_length=160)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('suite', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scenarios', to='simulations.simulationsuite')),
                    ('player', models.CharField(choices=[('script', 'A script'), ('model', 'A model')], default='script', max_length=8)),
                ],
                options={
                    'ordering': ['created_at', 'name'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('suite', 'name'), name='simulation_scenario_once')],
                },
            ),
            migrations.CreateModel(
                name='SimulationResult',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=160)),
                    ('place', models.PositiveIntegerField()),
                    ('outcome', models.CharField(choices=[('waiting', 'Waiting'), ('passed', 'Passed'), ('failed', 'Failed'), ('error', 'Broke off'), ('left_out', 'Left out')], default='waiting', max_length=8)),
                    ('failures', models.JSONField(default=list)),
                    ('conversation', models.JSONField(default=list)),
                    ('session_id', models.UUIDField(null=True)),
                    ('cost_usd', models.DecimalField(decimal_places=6, default=Decimal('0'), max_digits=12)),
                    ('finished_at', models.DateTimeField(null=True)),
                    ('scenario', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='simulations.scenario')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='results', to='simulations.simulationrun')),
                    ('ending', models.CharField(blank=True, choices=[('goal_reached', 'The visitor says they have what they wanted'), ('gave_up', 'The visitor gave up'), ('turn_limit', 'All turns were used'), ('budget', 'The budget was spent')], max_length=16)),
                    ('player', models.CharField(blank=True, max_length=120)),
                ],
                options={
                    'ordering': ['run', 'place'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('run', 'place'), name='simulation_result_once')],
                },
            ),
        ),
        RowSecurity("simulations_simulationcopy"),
        RowSecurity("simulations_simulationsuite"),
        RowSecurity("simulations_simulationrun"),
        RowSecurity("simulations_scenario"),
        RowSecurity("simulations_simulationresult"),
    ]
