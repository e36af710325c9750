"""Finds due work of all tenants by its time, and moves what web processes did beside turns to its own queue."""

import django.db.models.deletion
from django.db import migrations, models

from apps.bus.sql import due
from apps.bus.enums import Kind

DROP = """
    DROP FUNCTION IF EXISTS bus_waiting_lines(text[], int);
    DROP FUNCTION IF EXISTS bus_waiting_scopes(uuid, text, int, int);
    DROP FUNCTION IF EXISTS bus_lease_in_turn(uuid, text, text, text, double precision, int);
"""
MOVE = """
    SELECT set_config('silas.platform', 'on', true);
    UPDATE bus_queuemessage SET queue = 'trusted'
    WHERE queue = 'proxy' AND kind <> 'user_message' AND state IN ('queued', 'leased', 'dead');
    SELECT set_config('silas.platform', '', true);
"""
MOVE_BACK = MOVE.replace("'trusted'", "'#'").replace("'proxy'", "'trusted'").replace("'#'", "'proxy'")
# The tenants' room stands below the bus and cannot owe what waited before.
LETTERS = """
    SELECT coalesce(company_id, '00000000-0000-0000-0000-000000000000'), id::text, due_at FROM tenants_letter
    WHERE state = 'waiting'
"""


class Migration(migrations.Migration):
    dependencies = [("bus", "0001_squashed"), ("tenants", "0001_squashed")]

    operations = [
        migrations.AlterField(
            model_name='processed',
            name='tenant',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant'),
        ),
        migrations.AlterField(
            model_name='queuemessage',
            name='kind',
            field=models.CharField(choices=[('user_message', 'User Message'), ('plan_request', 'Plan Request'), ('plan_result', 'Plan Result'), ('research_request', 'Research Request'), ('research_result', 'Research Result'), ('execution_status', 'Execution Status'), ('consult_planner', 'Consult Planner'), ('planner_guidance', 'Planner Guidance'), ('replan_request', 'Replan Request'), ('system_event', 'System Event'), ('execution_request', 'Execution Request'), ('autonomous_session', 'Autonomous Session'), ('review_owed', 'Review Owed'), ('connection_owed', 'Connection Owed'), ('card_expiry', 'Card Expiry'), ('card_alert', 'Card Alert'), ('account_mail', 'Account Mail'), ('outbox_delivery', 'Outbox Delivery'), ('hold_alert', 'Hold Alert'), ('safety_code_mail', 'Safety Code Mail'), ('transcript_mail', 'Transcript Mail'), ('document_change', 'Document Change'), ('document_intake', 'Document Intake'), ('document_index', 'Document Index'), ('checkpoint', 'Checkpoint'), ('retention', 'Retention'), ('file_cleanup', 'File Cleanup'), ('skill_trial', 'Skill Trial'), ('skill_tried', 'Skill Tried'), ('connection_setup', 'Connection Setup'), ('connection_discovery', 'Connection Discovery'), ('connection_check', 'Connection Check'), ('keyring_cleanup', 'Keyring Cleanup'), ('tool_server_check', 'Tool Server Check'), ('wait_end', 'Wait End'), ('goal_cycle', 'Goal Cycle'), ('trigger_due', 'Trigger Due'), ('session_admission', 'Session Admission'), ('session_watch', 'Session Watch'), ('suggestion_look', 'Suggestion Look'), ('lost_calls', 'Lost Calls'), ('safety_expiry', 'Safety Expiry')], max_length=32),
        ),
        migrations.AlterField(
            model_name='queuemessage',
            name='queue',
            field=models.CharField(choices=[('proxy', 'Proxy'), ('planner', 'Planner'), ('executor', 'Executor'), ('runtime', 'Runtime'), ('trusted', 'Trusted'), ('work', 'Work'), ('parse', 'Parse'), ('upkeep', 'Upkeep')], max_length=16),
        ),
        migrations.AlterField(
            model_name='queuemessage',
            name='tenant',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant'),
        ),
        migrations.AddIndex(
            model_name='queuemessage',
            index=models.Index(condition=models.Q(('state', 'queued')), fields=['queue', 'available_at'], include=('tenant', 'scope_id'), name='bus_queued_by_time'),
        ),
        migrations.RunSQL(DROP, migrations.RunSQL.noop),
        migrations.RunSQL(MOVE, MOVE_BACK),
        migrations.RunSQL(
            due.schedule_rows(Kind.ACCOUNT_MAIL, LETTERS), due.unschedule_rows(Kind.ACCOUNT_MAIL)
        ),
        migrations.RunSQL(due.DUE, due.DUE_REVERSE),
        migrations.RunSQL(due.HELD_BY, due.HELD_BY_REVERSE),
    ]
