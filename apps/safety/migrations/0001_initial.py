import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity, Tables

# A policy's version and a report are written once.
STAY = """
CREATE FUNCTION safety_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what was written down here stays' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER safety_policy_no_rewrite BEFORE UPDATE OR DELETE ON safety_policyversion
    FOR EACH ROW EXECUTE FUNCTION safety_refuse();
CREATE TRIGGER safety_step_no_rewrite BEFORE UPDATE OR DELETE ON safety_step
    FOR EACH ROW EXECUTE FUNCTION safety_refuse();
"""
STAY_REVERSE = """
DROP TRIGGER safety_step_no_rewrite ON safety_step;
DROP TRIGGER safety_policy_no_rewrite ON safety_policyversion;
DROP FUNCTION safety_refuse();
"""


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("safety", "0001_squashed"),
        ("safety", "0002_report"),
        ("safety", "0002_step_window"),
        ("safety", "0003_alerts_are_owed_on_the_bus"),
        ("safety", "0003_hold_mailed_at"),
        ("safety", "0004_ends_are_due_on_the_bus"),
        ("safety", "0004_presses_pushes_take_back"),
        ("safety", "0005_report_at_once"),
        ("safety", "0005_reworded_labels"),
    ]

    dependencies = [
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='SafetyAgent',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('principal', models.CharField(max_length=80)),
                    ('name', models.CharField(max_length=120)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'principal', 'name'), name='safety_agent_once')],
                },
            ),
            migrations.CreateModel(
                name='Execution',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('status', models.CharField(choices=[('running', 'Running'), ('completed', 'Completed'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='running', max_length=10)),
                    ('steps', models.PositiveIntegerField(default=0)),
                    ('granted_at', models.PositiveIntegerField(default=0)),
                    ('started_at', models.DateTimeField()),
                    ('last_at', models.DateTimeField()),
                    ('finished_at', models.DateTimeField(null=True)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='executions', to='safety.safetyagent')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(fields=['tenant', '-last_at'], name='safety_execution_recent'), models.Index(condition=models.Q(('status', 'running')), fields=['agent', '-started_at'], name='safety_running')],
                    'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('finished_at', None), ('status', 'running')), models.Q(models.Q(('status', 'running'), _negated=True), ('finished_at__isnull', False)), _connector='OR'), name='safety_execution_ended_when_over')],
                },
            ),
            migrations.CreateModel(
                name='Hold',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('principal', models.CharField(max_length=80)),
                    ('kind', models.CharField(choices=[('confirm', 'Waiting for approval'), ('verify', 'Waiting for a code'), ('block', 'Blocked')], max_length=7)),
                    ('state', models.CharField(choices=[('open', 'Open'), ('lifted', 'Released by a person'), ('expired', 'Expired without an answer'), ('closed', 'Its run ended')], default='open', max_length=7)),
                    ('stage', models.CharField(choices=[('step_limit', 'Step limit'), ('outcome', 'Outcome of the previous step'), ('pattern', 'Patterns'), ('tier', 'Risk of the action'), ('tolerance', 'Risk tolerance'), ('fault', 'The evaluation failed')], max_length=10)),
                    ('tier', models.CharField(choices=[('advisory', 'May continue'), ('confirm', 'Requires confirmation by a person'), ('verify', 'Requires a code from a person'), ('danger_zone', 'Stops the agent')], max_length=11)),
                    ('hint', models.TextField()),
                    ('digest', models.CharField(max_length=64)),
                    ('reason', models.CharField(max_length=700)),
                    ('factors', models.JSONField(default=list)),
                    ('challenge_seconds', models.PositiveIntegerField()),
                    ('created_at', models.DateTimeField()),
                    ('ended_at', models.DateTimeField(null=True)),
                    ('ended_by', models.CharField(blank=True, max_length=80)),
                    ('used_at', models.DateTimeField(null=True)),
                    ('mailed_at', models.DateTimeField(null=True)),
                    ('pushed_at', models.DateTimeField(null=True)),
                    ('proofs', models.JSONField(default=dict)),
                    ('token_hashed', models.CharField(blank=True, max_length=64)),
                    ('token_expires_at', models.DateTimeField(null=True)),
                    ('token_used_at', models.DateTimeField(null=True)),
                    ('execution', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='holds', to='safety.execution')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='holds', to='safety.safetyagent')),
                ],
                options={
                    'ordering': ['-created_at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(condition=models.Q(('state', 'open')), fields=['tenant', 'kind'], name='safety_hold_open'), models.Index(condition=models.Q(('token_hashed', ''), _negated=True), fields=['token_hashed'], name='safety_hold_token')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('kind', 'block'), ('state', 'open')), fields=('tenant', 'principal'), name='safety_one_block'), models.UniqueConstraint(condition=models.Q(('state', 'open'), models.Q(('kind', 'block'), _negated=True)), fields=('execution',), name='safety_one_pause'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at', None), ('state', 'open')), models.Q(models.Q(('state', 'open'), _negated=True), ('ended_at__isnull', False)), _connector='OR'), name='safety_hold_ended_when_over'), models.CheckConstraint(condition=models.Q(models.Q(('kind', 'block'), _negated=True), ('state__in', ['open', 'lifted']), _connector='OR'), name='safety_block_ends_by_a_person')],
                },
            ),
            migrations.CreateModel(
                name='Step',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('seq', models.PositiveIntegerField()),
                    ('hint', models.TextField()),
                    ('description', models.TextField(blank=True)),
                    ('outcome', models.CharField(blank=True, choices=[('success', 'It worked'), ('failure', 'It failed'), ('skipped', 'It was skipped')], max_length=8)),
                    ('mode', models.CharField(choices=[('enforcing', 'Enforcing'), ('monitoring', "Monitoring: evaluates but doesn't hold agents"), ('logging', 'Logging: records without evaluating'), ('disabled', 'Disabled')], max_length=10)),
                    ('decision', models.CharField(choices=[('go', 'Continued'), ('pause', 'Paused'), ('stop', 'Stopped')], max_length=5)),
                    ('stage', models.CharField(blank=True, choices=[('step_limit', 'Step limit'), ('outcome', 'Outcome of the previous step'), ('pattern', 'Patterns'), ('tier', 'Risk of the action'), ('tolerance', 'Risk tolerance'), ('fault', 'The evaluation failed')], max_length=10)),
                    ('tier', models.CharField(blank=True, choices=[('advisory', 'May continue'), ('confirm', 'Requires confirmation by a person'), ('verify', 'Requires a code from a person'), ('danger_zone', 'Stops the agent')], max_length=11)),
                    ('score', models.PositiveSmallIntegerField(null=True)),
                    ('factors', models.JSONField(default=list)),
                    ('created_at', models.DateTimeField()),
                    ('execution', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reports', to='safety.execution')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['execution', '-seq'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(fields=['tenant', '-created_at'], name='safety_step_recent')],
                    'constraints': [models.UniqueConstraint(fields=('execution', 'seq'), name='safety_step_once')],
                },
            ),
            migrations.CreateModel(
                name='FailedTries',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('key', models.CharField(max_length=120)),
                    ('failures', models.PositiveIntegerField(default=0)),
                    ('window_start', models.DateTimeField()),
                    ('locked_until', models.DateTimeField(null=True)),
                    ('strikes', models.PositiveIntegerField(default=0)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'key'), name='safety_tries_once')],
                },
            ),
            migrations.CreateModel(
                name='Challenge',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('state', models.CharField(choices=[('pending', 'Waiting for its code'), ('verified', 'Verified'), ('failed', 'Wrong code entered'), ('expired', 'Expired'), ('superseded', 'Replaced by a newer one')], default='pending', max_length=10)),
                    ('hashed', models.CharField(blank=True, max_length=64)),
                    ('created_at', models.DateTimeField()),
                    ('shown_at', models.DateTimeField(null=True)),
                    ('expires_at', models.DateTimeField()),
                    ('ended_at', models.DateTimeField(null=True)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('hold', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='challenges', to='safety.hold')),
                ],
                options={
                    'ordering': ['-created_at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'pending')), fields=('hold',), name='safety_one_challenge')],
                },
            ),
            migrations.CreateModel(
                name='PolicyVersion',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('principal', models.CharField(blank=True, max_length=80)),
                    ('number', models.PositiveIntegerField()),
                    ('content', models.JSONField()),
                    ('taken_back', models.BooleanField(default=False)),
                    ('written_by', models.CharField(max_length=80)),
                    ('note', models.CharField(blank=True, max_length=200)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['principal', '-number'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'principal', 'number'), name='safety_policy_once'), models.CheckConstraint(condition=models.Q(('number__gte', 1)), name='safety_policy_counts'), models.CheckConstraint(condition=models.Q(('taken_back', False), models.Q(models.Q(('principal', ''), _negated=True), ('content', {})), _connector='OR'), name='safety_policy_own_taken_back')],
                },
            ),
            migrations.CreateModel(
                name='StepWindow',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('principal', models.CharField(max_length=80)),
                    ('steps', models.PositiveIntegerField(default=0)),
                    ('started_at', models.DateTimeField()),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'principal'), name='safety_step_window_once')],
                },
            ),
        ),
        RowSecurity("safety_safetyagent"),
        RowSecurity("safety_execution"),
        RowSecurity("safety_hold"),
        RowSecurity("safety_step"),
        RowSecurity("safety_failedtries"),
        RowSecurity("safety_challenge"),
        RowSecurity("safety_policyversion"),
        RowSecurity("safety_stepwindow"),
        migrations.RunSQL(STAY, STAY_REVERSE),
    ]
