import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models

from apps.bus.sql import due, leases
from kernel.tenancy.migrations import RowSecurity, Tables, over_all_tenants

# The standing work of the installation. Each tenant gets its own when it is made.
STANDING = over_all_tenants("""
    INSERT INTO bus_queuemessage (id, tenant_id, queue, kind, message_id, trace_id, scope_id, content, sender,
                                  taint, urgency, error_code, origin_agent, state, attempts, consumer, fence,
                                  reason, available_at)
    SELECT gen_random_uuid(), '00000000-0000-0000-0000-000000000000', 'trusted', kind, kind || ':' || scope,
           gen_random_uuid(), scope, '', 'runtime', 'auth', 'informational', '', '', 'queued', 0, '', 0, '',
           statement_timestamp()
    FROM (VALUES ('retention', 'retention'), ('checkpoint', 'checkpoints'), ('file_cleanup', 'files'))
        AS work (kind, scope)
""")


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("bus", "0001_squashed"),
        ("bus", "0002_due_work"),
        ("bus", "0002_typed_messages"),
        ("bus", "0003_lease_of_a_scope"),
        ("bus", "0003_standing_rows"),
        ("bus", "0004_messages_are_owed_in_python"),
        ("bus", "0004_turns"),
        ("bus", "0005_dropped"),
        ("bus", "0005_memory_consolidation"),
        ("bus", "0006_owe"),
        ("bus", "0006_simulations"),
        ("bus", "0007_gap_kinds"),
        ("bus", "0007_upkeep"),
        ("bus", "0008_sources"),
        ("bus", "0008_waiting"),
        ("bus", "0009_autonomous_session"),
        ("bus", "0009_memory_embedding"),
        ("bus", "0010_memory_reading"),
        ("bus", "0010_review_owed"),
        ("bus", "0011_connection_owed"),
        ("bus", "0011_provider_embedding"),
        ("bus", "0012_import_kinds"),
        ("bus", "0013_channel_kinds"),
        ("bus", "0014_card_notices"),
        ("bus", "0015_teams"),
        ("bus", "0016_inbox_rules"),
        ("bus", "0017_person_erasure"),
        ("bus", "0018_sla_clocks"),
    ]

    dependencies = [
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='Processed',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('consumer', models.CharField(max_length=80)),
                    ('message_id', models.CharField(max_length=128)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'message_id', 'consumer'), name='bus_processed_once')],
                },
            ),
            migrations.CreateModel(
                name='QueueMessage',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('queue', models.CharField(choices=[('proxy', 'Proxy'), ('planner', 'Planner'), ('executor', 'Executor'), ('runtime', 'Runtime'), ('trusted', 'Trusted'), ('work', 'Work'), ('parse', 'Parse'), ('upkeep', 'Upkeep'), ('simulation', 'Simulation')], max_length=16)),
                    ('kind', models.CharField(choices=[('user_message', 'User Message'), ('plan_request', 'Plan Request'), ('plan_result', 'Plan Result'), ('research_request', 'Research Request'), ('research_result', 'Research Result'), ('execution_status', 'Execution Status'), ('consult_planner', 'Consult Planner'), ('planner_guidance', 'Planner Guidance'), ('replan_request', 'Replan Request'), ('system_event', 'System Event'), ('execution_request', 'Execution Request'), ('autonomous_session', 'Autonomous Session'), ('review_owed', 'Review Owed'), ('connection_owed', 'Connection Owed'), ('card_expiry', 'Card Expiry'), ('card_alert', 'Card Alert'), ('account_mail', 'Account Mail'), ('outbox_delivery', 'Outbox Delivery'), ('hold_alert', 'Hold Alert'), ('safety_code_mail', 'Safety Code Mail'), ('transcript_mail', 'Transcript Mail'), ('document_change', 'Document Change'), ('document_intake', 'Document Intake'), ('document_index', 'Document Index'), ('checkpoint', 'Checkpoint'), ('retention', 'Retention'), ('file_cleanup', 'File Cleanup'), ('skill_trial', 'Skill Trial'), ('skill_tried', 'Skill Tried'), ('connection_setup', 'Connection Setup'), ('connection_discovery', 'Connection Discovery'), ('connection_check', 'Connection Check'), ('keyring_cleanup', 'Keyring Cleanup'), ('tool_server_check', 'Tool Server Check'), ('wait_end', 'Wait End'), ('goal_cycle', 'Goal Cycle'), ('trigger_due', 'Trigger Due'), ('session_admission', 'Session Admission'), ('session_watch', 'Session Watch'), ('suggestion_look', 'Suggestion Look'), ('lost_calls', 'Lost Calls'), ('safety_expiry', 'Safety Expiry'), ('memory_consolidation', 'Memory Consolidation'), ('simulation_run', 'Simulation Run'), ('simulation_chunk', 'Simulation Chunk'), ('gap_clustering', 'Gap Clustering'), ('source_sync', 'Source Sync'), ('memory_embedding', 'Memory Embedding'), ('memory_reading', 'Memory Reading'), ('provider_embedding', 'Provider Embedding'), ('import_read', 'Import Read'), ('import_apply', 'Import Apply'), ('channel_inbound', 'Channel Inbound'), ('channel_delivery', 'Channel Delivery'), ('channel_poll', 'Channel Poll'), ('card_notice', 'Card Notice'), ('mail_read', 'Mail Read'), ('desk_routing', 'Desk Routing'), ('inbox_rules', 'Inbox Rules'), ('person_erasure', 'Person Erasure'), ('sla_clocks', 'Sla Clocks')], max_length=32)),
                    ('message_id', models.CharField(max_length=128)),
                    ('trace_id', models.CharField(max_length=64)),
                    ('scope_id', models.CharField(max_length=64)),
                    ('content', models.TextField(blank=True)),
                    ('payload', models.JSONField(blank=True, null=True)),
                    ('sender', models.CharField(choices=[('user', 'User'), ('proxy', 'Proxy'), ('planner', 'Planner'), ('executor', 'Executor'), ('runtime', 'Runtime')], max_length=16)),
                    ('taint', models.CharField(choices=[('owner', 'owner'), ('auth', 'auth'), ('external', 'external')], max_length=16)),
                    ('task_id', models.UUIDField(blank=True, null=True)),
                    ('parent_task_id', models.UUIDField(blank=True, null=True)),
                    ('urgency', models.CharField(choices=[('background', 'Background'), ('informational', 'Informational'), ('needs_attention', 'Needs Attention')], default='informational', max_length=16)),
                    ('error_code', models.CharField(blank=True, choices=[('tool_failure', 'Tool Failure'), ('budget_exceeded', 'Budget Exceeded'), ('gate_blocked', 'Gate Blocked'), ('approval_denied', 'Approval Denied'), ('verification_failed', 'Verification Failed'), ('timeout', 'Timeout')], max_length=24)),
                    ('retryable', models.BooleanField(blank=True, null=True)),
                    ('origin_agent', models.CharField(blank=True, choices=[('user', 'User'), ('proxy', 'Proxy'), ('planner', 'Planner'), ('executor', 'Executor'), ('runtime', 'Runtime')], max_length=16)),
                    ('attempt_number', models.PositiveSmallIntegerField(blank=True, null=True)),
                    ('extras', models.JSONField(blank=True, help_text='plan_markdown, approval_token, artifacts, constraints', null=True)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('position', models.BigIntegerField(editable=False)),
                    ('state', models.CharField(choices=[('queued', 'Queued'), ('leased', 'Leased'), ('acked', 'Acked'), ('dead', 'Dead'), ('dropped', 'Dropped')], default='queued', max_length=8)),
                    ('attempts', models.PositiveSmallIntegerField(default=0)),
                    ('available_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('consumer', models.CharField(blank=True, max_length=80)),
                    ('fence', models.BigIntegerField(default=0)),
                    ('leased_until', models.DateTimeField(blank=True, null=True)),
                    ('reason', models.CharField(blank=True, max_length=200)),
                    ('finished_at', models.DateTimeField(blank=True, null=True)),
                    ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['position'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(condition=models.Q(('state__in', ('queued', 'leased'))), fields=['tenant', 'queue', 'scope_id', 'position'], name='bus_by_scope'), models.Index(condition=models.Q(('state', 'dead')), fields=['tenant', 'finished_at'], name='bus_dead'), models.Index(condition=models.Q(('state__in', ('acked', 'dropped'))), fields=['tenant', 'finished_at'], name='bus_closed'), models.Index(condition=models.Q(('state', 'queued')), fields=['queue', 'available_at'], include=('tenant', 'scope_id'), name='bus_queued_by_time')],
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'queue', 'message_id'), name='bus_message_once'), models.UniqueConstraint(condition=models.Q(('leased_until__isnull', False)), fields=('tenant', 'queue', 'scope_id'), name='bus_one_lease_a_scope'), models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', True), ('state__in', ('queued', 'leased'))), models.Q(models.Q(('state__in', ('queued', 'leased')), _negated=True), ('finished_at__isnull', False)), _connector='OR'), name='bus_finished_has_a_time'), models.CheckConstraint(condition=models.Q(models.Q(('leased_until__isnull', False), ('state', 'leased')), models.Q(models.Q(('state', 'leased'), _negated=True), ('leased_until__isnull', True)), _connector='OR'), name='bus_leased_has_an_end'), models.CheckConstraint(condition=models.Q(('error_code', ''), models.Q(('attempt_number__isnull', False), ('retryable__isnull', False), models.Q(('origin_agent', ''), _negated=True)), _connector='OR'), name='bus_error_has_its_headers'), models.CheckConstraint(condition=models.Q(models.Q(('kind', 'execution_status'), ('payload__status__in', ['failed', 'stuck', 'blocked', 'verification_failed']), _negated=True), models.Q(('error_code', ''), _negated=True), _connector='OR'), name='bus_failing_status_says_why')],
                },
            ),
        ),
        RowSecurity("bus_processed"),
        RowSecurity("bus_queuemessage"),
        migrations.RunSQL(leases.POSITION, leases.POSITION_REVERSE),
        migrations.RunSQL(leases.LEASE_OF_SCOPE, leases.LEASE_OF_SCOPE_REVERSE),
        migrations.RunSQL(due.DUE, due.DUE_REVERSE),
        migrations.RunSQL(due.HELD_BY, due.HELD_BY_REVERSE),
        migrations.RunSQL(STANDING, migrations.RunSQL.noop),
    ]
