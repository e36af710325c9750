import django.core.validators
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models

from apps.bus.enums import Kind
from apps.bus.sql.due import schedule_rows, unschedule_rows
from apps.guard.sql import lost_calls, phases, platform_budgets
from kernel.tenancy.migrations import AppendOnly, PlatformOnly, RowSecurity, Tables

INSTALLATION = "SELECT '00000000-0000-0000-0000-000000000000'::uuid, 'lost_calls', statement_timestamp()"


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("guard", "0001_squashed"),
        ("guard", "0002_admit_at_once"),
        ("guard", "0002_read_file"),
        ("guard", "0003_content_marks"),
        ("guard", "0003_phases_in_order"),
        ("guard", "0004_holders"),
        ("guard", "0004_reserve_tokens"),
        ("guard", "0005_marked_turn"),
        ("guard", "0005_prices"),
        ("guard", "0006_one_decision"),
        ("guard", "0006_running"),
        ("guard", "0007_lost_calls"),
        ("guard", "0007_outside_tools"),
        ("guard", "0008_calls_in_one_statement"),
        ("guard", "0008_reworded_labels"),
        ("guard", "0009_artifacts"),
        ("guard", "0009_run_connection"),
        ("guard", "0010_settle_at_once"),
    ]

    dependencies = [
        ("bus", "0001_initial"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='GuardedRun',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('origin', models.CharField(choices=[('chat', 'Chat'), ('work', 'Work'), ('background', 'Background')], max_length=16)),
                    ('owner_ref', models.UUIDField()),
                    ('phase', models.CharField(choices=[('intake', 'Intake'), ('analysis', 'Analysis'), ('drafting', 'Drafting'), ('ethics_review', 'Ethics Review'), ('delivery', 'Delivery'), ('interactive', 'Interactive'), ('execution', 'Execution')], max_length=16)),
                    ('critical', models.BooleanField(db_default=True, default=True)),
                    ('task_ref', models.UUIDField(blank=True, null=True)),
                    ('status', models.CharField(choices=[('running', 'Running'), ('completed', 'Completed'), ('halted', 'Halted'), ('failed', 'Failed')], default='running', max_length=16)),
                    ('halt_state', models.CharField(choices=[('running', 'Running'), ('paused', 'Paused'), ('halt_requested', 'Halt Requested'), ('halted', 'Halted')], default='running', max_length=16)),
                    ('terminal_reason', models.CharField(blank=True, choices=[('completed', 'Completed'), ('healthy', 'Healthy'), ('external_halt', 'External Halt'), ('idle_timeout', 'Idle Timeout'), ('cost_cap_reached', 'Cost Cap Reached'), ('budget_tokens', 'Budget Tokens'), ('budget_tool_calls', 'Budget Tool Calls'), ('budget_wall_clock', 'Budget Wall Clock'), ('global_daily', 'Global Daily'), ('global_monthly', 'Global Monthly'), ('tool_not_granted', 'Tool Not Granted'), ('approval_missing', 'Approval Missing'), ('failed', 'Failed'), ('worker_lost', 'Worker Lost'), ('cancelled', 'Cancelled')], max_length=20)),
                    ('allow', models.JSONField(blank=True, null=True)),
                    ('deny', models.JSONField(blank=True, default=list)),
                    ('limits', models.JSONField(blank=True, default=dict)),
                    ('approval', models.JSONField(blank=True, null=True)),
                    ('seq', models.IntegerField(default=0)),
                    ('calls', models.IntegerField(default=0)),
                    ('input_tokens', models.BigIntegerField(default=0)),
                    ('output_tokens', models.BigIntegerField(default=0)),
                    ('cost_total', models.DecimalField(decimal_places=9, default=0, max_digits=18)),
                    ('cost_reserved', models.DecimalField(decimal_places=9, default=0, max_digits=18)),
                    ('cost_cap_reached', models.BooleanField(default=False)),
                    ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('ended_at', models.DateTimeField(blank=True, null=True)),
                    ('deployment', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.deployment')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('content_marks', models.PositiveIntegerField(db_default=0, default=0)),
                    ('marked_turn', models.UUIDField(blank=True, null=True)),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(fields=['tenant', 'owner_ref'], name='guard_run_by_owner'), models.Index(condition=models.Q(('status', 'running')), fields=['tenant', '-started_at'], name='guard_run_running')],
                    'constraints': [models.CheckConstraint(condition=models.Q(('cost_reserved__gte', 0), ('cost_total__gte', 0)), name='guard_costs_positive'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('status', 'running')), models.Q(models.Q(('status', 'running'), _negated=True), ('ended_at__isnull', False)), _connector='OR'), name='guard_run_ended_when_over')],
                },
            ),
            migrations.CreateModel(
                name='ModelPrice',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('model', models.CharField(max_length=120, validators=[django.core.validators.RegexValidator('^(?!builtin:|ollama:)[a-z0-9-]+:\\S+$', 'provider:model, of a model that costs')])),
                    ('input_per_million', models.DecimalField(decimal_places=9, max_digits=18)),
                    ('output_per_million', models.DecimalField(decimal_places=9, max_digits=18)),
                    ('cache_read_per_million', models.DecimalField(blank=True, decimal_places=9, max_digits=18, null=True)),
                    ('cache_write_per_million', models.DecimalField(blank=True, decimal_places=9, max_digits=18, null=True)),
                    ('changed_at', models.DateTimeField(auto_now=True)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'model'), name='guard_price_once'), models.CheckConstraint(condition=models.Q(('input_per_million__gte', 0), ('output_per_million__gte', 0), models.Q(('cache_read_per_million', None), ('cache_read_per_million__gte', 0), _connector='OR'), models.Q(('cache_write_per_million', None), ('cache_write_per_million__gte', 0), _connector='OR')), name='guard_price_positive', violation_error_message='A price is 0 or more.')],
                },
            ),
            migrations.CreateModel(
                name='PlatformBudget',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('period', models.CharField(choices=[('day', 'Day'), ('month', 'Month')], max_length=8, unique=True)),
                    ('limit_usd', models.DecimalField(decimal_places=9, max_digits=18)),
                    ('window_start', models.DateField(blank=True, editable=False, null=True)),
                    ('spent', models.DecimalField(decimal_places=9, default=0, editable=False, max_digits=18)),
                    ('reserved', models.DecimalField(decimal_places=9, default=0, editable=False, max_digits=18)),
                    ('alerted', models.SmallIntegerField(db_default=0, default=0, editable=False)),
                ],
                options={
                    'constraints': [models.CheckConstraint(condition=models.Q(('limit_usd__gte', 0)), name='guard_platform_limit_positive')],
                },
            ),
            migrations.CreateModel(
                name='SpendingPolicy',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('on_limit', models.CharField(choices=[('pause_all', 'Stop everything that costs money, and automations'), ('pause_non_critical', "Stop automations that aren't critical"), ('alert_only', 'Notify people without stopping anything')], default='pause_all', max_length=20)),
                    ('visitor_daily_usd', models.DecimalField(blank=True, decimal_places=9, max_digits=18, null=True)),
                    ('default_input', models.DecimalField(blank=True, decimal_places=9, max_digits=18, null=True)),
                    ('default_output', models.DecimalField(blank=True, decimal_places=9, max_digits=18, null=True)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'verbose_name': 'spending policy',
                    'verbose_name_plural': 'spending policies',
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant',), name='guard_policy_once'), models.CheckConstraint(condition=models.Q(('visitor_daily_usd__gte', 0)), name='guard_policy_visitor_positive'), models.CheckConstraint(condition=models.Q(models.Q(('default_input', None), ('default_output', None)), models.Q(('default_input__gte', 0), ('default_output__gte', 0), models.Q(('default_input', None), _negated=True), models.Q(('default_output', None), _negated=True)), _connector='OR'), name='guard_policy_default_whole', violation_error_message='A default price needs both: input and output, 0 or more.')],
                },
            ),
            migrations.CreateModel(
                name='SystemControl',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('pause', models.CharField(choices=[('none', 'None'), ('pause_non_critical', 'Non Critical'), ('pause_all', 'All')], default='none', max_length=20)),
                    ('deployment', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.deployment')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'deployment'), name='guard_control_once', nulls_distinct=False)],
                },
            ),
            migrations.CreateModel(
                name='ToolCall',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('seq', models.IntegerField()),
                    ('effect_key', models.CharField(max_length=240)),
                    ('intent', models.CharField(choices=[('retrieve_chunks', 'Retrieve Chunks'), ('run_skill', 'Run Skill'), ('run_playbook', 'Run Playbook'), ('propose_precedent', 'Propose Precedent'), ('propose_memory', 'Propose Memory'), ('emit_finding', 'Emit Finding'), ('emit_artifact', 'Emit Artifact'), ('notify', 'Notify'), ('converse', 'Converse'), ('read_file', 'Read File'), ('plan', 'Plan'), ('call_mcp_tool', 'Call Mcp Tool'), ('web_search', 'Web Search'), ('run_connection', 'Run Connection')], max_length=24)),
                    ('tool', models.CharField(max_length=120)),
                    ('model', models.CharField(blank=True, db_default='', max_length=120)),
                    ('args_digest', models.CharField(max_length=64)),
                    ('state', models.CharField(choices=[('admitted', 'Admitted'), ('executed', 'Executed'), ('error', 'Error'), ('uncertain', 'Uncertain'), ('denied', 'Denied'), ('refused', 'Refused')], max_length=12)),
                    ('reserved', models.DecimalField(decimal_places=9, default=0, max_digits=18)),
                    ('charged', models.DecimalField(decimal_places=9, default=0, max_digits=18)),
                    ('measured', models.BooleanField(db_default=False, default=False)),
                    ('error_code', models.CharField(blank=True, max_length=60)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('deadline', models.DateTimeField(blank=True, null=True)),
                    ('settled_at', models.DateTimeField(blank=True, null=True)),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tool_calls', to='guard.guardedrun')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('tokens_reserved', models.BigIntegerField(db_default=0, default=0)),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(condition=models.Q(('measured', True)), fields=['tenant', 'model', 'tool', '-settled_at'], include=('charged',), name='guard_call_measured'), models.Index(condition=models.Q(('state', 'admitted')), fields=['deadline'], include=('tenant',), name='guard_call_overdue')],
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'effect_key'), name='guard_effect_once'), models.UniqueConstraint(fields=('run', 'seq'), name='guard_call_seq_once')],
                },
            ),
            migrations.CreateModel(
                name='SpendEntry',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('kind', models.CharField(choices=[('reserve', 'Reserve'), ('settle', 'Settle')], max_length=8)),
                    ('intent', models.CharField(choices=[('retrieve_chunks', 'Retrieve Chunks'), ('run_skill', 'Run Skill'), ('run_playbook', 'Run Playbook'), ('propose_precedent', 'Propose Precedent'), ('propose_memory', 'Propose Memory'), ('emit_finding', 'Emit Finding'), ('emit_artifact', 'Emit Artifact'), ('notify', 'Notify'), ('converse', 'Converse'), ('read_file', 'Read File'), ('plan', 'Plan'), ('call_mcp_tool', 'Call Mcp Tool'), ('web_search', 'Web Search'), ('run_connection', 'Run Connection')], max_length=24)),
                    ('model', models.CharField(blank=True, max_length=120)),
                    ('purpose', models.CharField(blank=True, db_default='', max_length=120)),
                    ('day', models.DateField()),
                    ('amount', models.DecimalField(decimal_places=9, max_digits=18)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('deployment', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.deployment')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('call', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='spend', to='guard.toolcall')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(fields=['tenant', 'day'], name='guard_spend_by_day')],
                },
            ),
            migrations.CreateModel(
                name='Budget',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('visitor_ref', models.UUIDField(blank=True, null=True)),
                    ('task_ref', models.UUIDField(blank=True, null=True)),
                    ('ref', models.GeneratedField(db_persist=True, expression=django.db.models.functions.comparison.Coalesce('visitor_ref', 'task_ref', 'deployment_id', 'tenant_id'), output_field=models.UUIDField())),
                    ('period', models.CharField(choices=[('day', 'Day'), ('month', 'Month')], max_length=8)),
                    ('limit_usd', models.DecimalField(decimal_places=9, max_digits=18, null=True)),
                    ('window_start', models.DateField(blank=True, editable=False, null=True)),
                    ('spent', models.DecimalField(decimal_places=9, default=0, editable=False, max_digits=18)),
                    ('reserved', models.DecimalField(decimal_places=9, default=0, editable=False, max_digits=18)),
                    ('alerted', models.SmallIntegerField(db_default=0, default=0, editable=False)),
                    ('paused_in', models.DateField(blank=True, editable=False, null=True)),
                    ('deployment', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.deployment')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(condition=models.Q(('paused_in__isnull', False)), fields=['tenant'], name='guard_budget_paused')],
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'ref', 'period'), name='guard_budget_once'), models.CheckConstraint(condition=models.Q(('limit_usd__gte', 0)), name='guard_budget_limit_positive'), models.CheckConstraint(condition=models.Q(('limit_usd__isnull', False), ('visitor_ref__isnull', False), _connector='OR'), name='guard_budget_has_limit'), models.CheckConstraint(condition=models.Q(models.Q(('task_ref', None), ('visitor_ref', None)), models.Q(('deployment', None), ('visitor_ref', None)), models.Q(('deployment', None), ('task_ref', None)), _connector='OR'), name='guard_budget_of_one')],
                },
            ),
        ),
        RowSecurity("guard_guardedrun"),
        RowSecurity("guard_modelprice"),
        PlatformOnly("guard_platformbudget"),
        RowSecurity("guard_spendingpolicy"),
        RowSecurity("guard_systemcontrol"),
        RowSecurity("guard_toolcall"),
        RowSecurity("guard_spendentry"),
        RowSecurity("guard_budget"),
        AppendOnly(
            "guard",
            "the spend ledger cannot be rewritten",
            "guard_spendentry",
            named={"guard_spendentry": "guard_spend"},
        ),
        migrations.RunSQL(phases.ORDER, phases.ORDER_REVERSE),
        migrations.RunSQL(platform_budgets.FORWARD, platform_budgets.REVERSE),
        migrations.RunSQL(lost_calls.LOST, lost_calls.LOST_REVERSE),
        migrations.RunSQL(schedule_rows(Kind.LOST_CALLS, INSTALLATION), unschedule_rows(Kind.LOST_CALLS)),
    ]
