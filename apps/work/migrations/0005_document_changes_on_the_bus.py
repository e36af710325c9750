"""Moves approved changes of documents that wait to the bus, which carries their claims now."""

from django.db import migrations, models

OWE = """
    SELECT set_config('silas.platform', 'on', true);
    INSERT INTO bus_queuemessage (
        id, tenant_id, queue, kind, message_id, trace_id, scope_id, content, sender, taint, urgency, error_code,
        origin_agent, state, attempts, consumer, fence, reason, available_at)
    SELECT gen_random_uuid(), effect.tenant_id, 'trusted', 'document_change', gen_random_uuid(), gen_random_uuid(),
        effect.id, '', 'runtime', 'auth', 'informational', '', '', 'queued', 0, '', 0, '', statement_timestamp()
    FROM work_knowledgeeffect effect WHERE effect.state = 'asked';
    SELECT set_config('silas.platform', '', true);
    DROP FUNCTION IF EXISTS work_knowledge_waiting_tenants();
"""


class Migration(migrations.Migration):
    dependencies = [("work", "0004_thresholds_by_exact_approval"), ("bus", "0002_due_work")]

    operations = [
        migrations.RunSQL(OWE, migrations.RunSQL.noop),
        migrations.RemoveIndex(model_name="knowledgeeffect", name="knowledge_effect_asked"),
        migrations.RemoveField(model_name="knowledgeeffect", name="claimed_until"),
        migrations.AlterField(
            model_name="knowledgeeffect",
            name="state",
            field=models.CharField(
                choices=[
                    ("asked", "Waits for the trusted worker"),
                    ("done", "Carried out"),
                    ("refused", "Refused"),
                    ("withdrawn", "Nobody waited any longer"),
                ],
                default="asked",
                max_length=10,
            ),
        ),
    ]
