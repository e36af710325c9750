from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('bus', '0001_initial'),
    ]

    operations = [
        migrations.AlterField(
            model_name='queuemessage',
            name='extras',
            field=models.JSONField(blank=True, help_text='plan_markdown, approval_token, constraints', null=True),
        ),
        migrations.AlterField(
            model_name='queuemessage',
            name='kind',
            field=models.CharField(choices=[('user_message', 'User Message'), ('plan_result', 'Plan Result'), ('research_request', 'Research Request'), ('research_result', 'Research Result'), ('execution_status', 'Execution Status'), ('consult_planner', 'Consult Planner'), ('planner_guidance', 'Planner Guidance'), ('replan_request', 'Replan Request'), ('system_event', 'System Event'), ('execution_request', 'Execution Request'), ('autonomous_session', 'Autonomous Session'), ('review_owed', 'Review Owed'), ('connection_owed', 'Connection Owed'), ('card_expiry', 'Card Expiry'), ('card_alert', 'Card Alert'), ('account_mail', 'Account Mail'), ('outbox_delivery', 'Outbox Delivery'), ('hold_alert', 'Hold Alert'), ('safety_code_mail', 'Safety Code Mail'), ('transcript_mail', 'Transcript Mail'), ('document_change', 'Document Change'), ('document_intake', 'Document Intake'), ('document_index', 'Document Index'), ('checkpoint', 'Checkpoint'), ('retention', 'Retention'), ('file_cleanup', 'File Cleanup'), ('skill_trial', 'Skill Trial'), ('skill_tried', 'Skill Tried'), ('connection_setup', 'Connection Setup'), ('connection_discovery', 'Connection Discovery'), ('connection_check', 'Connection Check'), ('keyring_cleanup', 'Keyring Cleanup'), ('tool_server_check', 'Tool Server Check'), ('wait_end', 'Wait End'), ('goal_cycle', 'Goal Cycle'), ('trigger_due', 'Trigger Due'), ('session_admission', 'Session Admission'), ('session_watch', 'Session Watch'), ('suggestion_look', 'Suggestion Look'), ('lost_calls', 'Lost Calls'), ('safety_expiry', 'Safety Expiry'), ('memory_consolidation', 'Memory Consolidation'), ('simulation_run', 'Simulation Run'), ('simulation_chunk', 'Simulation Chunk'), ('gap_clustering', 'Gap Clustering'), ('source_sync', 'Source Sync'), ('memory_embedding', 'Memory Embedding'), ('memory_reading', 'Memory Reading'), ('provider_embedding', 'Provider Embedding'), ('import_read', 'Import Read'), ('import_apply', 'Import Apply'), ('channel_inbound', 'Channel Inbound'), ('channel_delivery', 'Channel Delivery'), ('channel_poll', 'Channel Poll'), ('card_notice', 'Card Notice'), ('mail_read', 'Mail Read'), ('desk_routing', 'Desk Routing'), ('inbox_rules', 'Inbox Rules'), ('person_erasure', 'Person Erasure'), ('sla_clocks', 'Sla Clocks')], max_length=32),
        ),
    ]
