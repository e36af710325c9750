"""Owes on the bus what the tick looked for: triggers, sessions that wait, watches of running ones, suggestions."""

from django.db import migrations

DROP = """
    DROP FUNCTION IF EXISTS autonomy_due_tenants();
    DROP FUNCTION IF EXISTS autonomy_running();
"""
_INTO = """
    INSERT INTO bus_queuemessage (id, tenant_id, queue, kind, message_id, trace_id, scope_id, content, sender, taint,
                                  urgency, error_code, origin_agent, state, attempts, consumer, fence, reason,
                                  available_at)
    SELECT gen_random_uuid(), due.tenant_id, '{queue}', '{kind}', '{kind}:' || due.scope, gen_random_uuid(),
           '{kind}:' || due.scope, '', 'runtime', 'auth', 'informational', '', '', 'queued', 0, '', 0, '', due.at
    FROM ({found}) AS due ON CONFLICT (tenant_id, queue, message_id) DO NOTHING;
"""
_FOUND = {
    "trigger_due": """
        SELECT t.tenant_id, t.id::text AS scope, t.next_at AS at FROM autonomy_trigger t
        WHERE t.enabled AND t.deleted_at IS NULL AND t.next_at IS NOT NULL
        UNION SELECT o.tenant_id, o.trigger_id::text, now() FROM autonomy_occurrence o
    """,
    # Each with a scope of its own: the time before which an attempt may not begin holds up no other.
    "session_admission": """
        SELECT s.tenant_id, s.id::text AS scope, greatest(s.not_before, now()) AS at FROM autonomy_autonomoussession s
        WHERE s.admitted_at IS NULL AND s.ended_at IS NULL AND s.status = 'queued'
        UNION SELECT s.tenant_id, s.tenant_id::text, now() FROM autonomy_autonomoussession s
        WHERE s.trigger_kind = 'delegated' AND s.queued_at >= now() - interval '2 days'
    """,
    "session_watch": """
        SELECT s.tenant_id, s.id::text AS scope, now() AS at FROM autonomy_autonomoussession s
        WHERE s.admitted_at IS NOT NULL AND s.ended_at IS NULL
    """,
    "suggestion_look": """
        SELECT s.tenant_id, s.tenant_id::text AS scope, now() AS at FROM autonomy_autonomysettings s WHERE s.enabled
        UNION SELECT o.tenant_id, o.tenant_id::text, now() FROM autonomy_outcome o
        WHERE o.decided_at > now() - interval '1 day'
    """,
}
OWE = "".join(
    (
        "SELECT set_config('silas.platform', 'on', true);",
        *(
            _INTO.format(kind=kind, found=found, queue="trusted" if kind == "suggestion_look" else "upkeep")
            for kind, found in _FOUND.items()
        ),
        "SELECT set_config('silas.platform', '', true);",
    )
)


class Migration(migrations.Migration):
    dependencies = [("autonomy", "0005_outbox_is_owed_on_the_bus"), ("bus", "0002_due_work")]

    operations = [
        migrations.RunSQL(OWE, migrations.RunSQL.noop),
        migrations.RemoveConstraint(model_name="autonomysettings", name="autonomy_heartbeat"),
        migrations.RemoveField(model_name="autonomysettings", name="heartbeat_seconds"),
        migrations.RemoveField(model_name="autonomysettings", name="ticked_at"),
        migrations.RemoveIndex(model_name="trigger", name="autonomy_trigger_due"),
        migrations.RunSQL(DROP, migrations.RunSQL.noop),
    ]
