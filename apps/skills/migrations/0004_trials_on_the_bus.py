"""Moves proposed skills that wait for a trial to the bus, which carries their claims now."""

from django.db import migrations

OWE = """
    SELECT set_config('silas.platform', 'on', true);
    INSERT INTO bus_queuemessage (
        id, tenant_id, queue, kind, message_id, trace_id, scope_id, content, sender, taint, urgency, error_code,
        origin_agent, state, attempts, consumer, fence, reason, available_at)
    SELECT gen_random_uuid(), version.tenant_id, 'work', 'skill_trial', gen_random_uuid(), gen_random_uuid(),
        'skill_trial:' || version.id, '', 'runtime', 'auth', 'informational', '', '', 'queued', 0, '', 0, '', statement_timestamp()
    FROM skills_skillversion version
    WHERE version.status = 'proposed' AND (version.card_id IS NULL OR version.approval_token_id IS NOT NULL);
    SELECT set_config('silas.platform', '', true);
    DROP FUNCTION IF EXISTS skills_waiting_tenants();
"""


class Migration(migrations.Migration):
    dependencies = [("skills", "0003_bundled_skills_are_a_manifest"), ("bus", "0002_due_work")]

    operations = [
        migrations.RunSQL(OWE, migrations.RunSQL.noop),
        migrations.RemoveField(model_name="skillversion", name="claimed_until"),
    ]
