"""Schedules the clean-up of every tenant, spread over the hours, and the standing work of the installation."""

from django.db import migrations

_COLUMNS = """
    id, tenant_id, queue, kind, message_id, trace_id, scope_id, content, sender, taint, urgency, error_code,
    origin_agent, state, attempts, consumer, fence, reason, available_at
"""
_ROW = """
    gen_random_uuid(), {tenant}, 'trusted', {kind}, {kind} || ':' || {scope}, gen_random_uuid(), {scope}, '', 'runtime',
    'auth', 'informational', '', '', 'queued', 0, '', 0, '', {due}
"""
_OF_TENANT = _ROW.format(
    tenant="tenant.id",
    kind="'retention'",
    scope="'retention'",
    due="statement_timestamp() + random() * interval '6 hours'",
)
_OF_INSTALLATION = _ROW.format(
    tenant="'00000000-0000-0000-0000-000000000000'", kind="work.kind", scope="work.scope", due="statement_timestamp()"
)
SCHEDULE = f"""
    SELECT set_config('silas.platform', 'on', true);
    INSERT INTO bus_queuemessage ({_COLUMNS}) SELECT {_OF_TENANT} FROM tenants_tenant tenant
        ON CONFLICT (tenant_id, queue, message_id) DO NOTHING;
    INSERT INTO bus_queuemessage ({_COLUMNS}) SELECT {_OF_INSTALLATION}
        FROM (VALUES ('retention', 'retention'), ('checkpoint', 'checkpoints'), ('file_cleanup', 'files'))
            AS work (kind, scope)
        ON CONFLICT (tenant_id, queue, message_id) DO NOTHING;
    SELECT set_config('silas.platform', '', true);
"""  # noqa: S608  (our own words)
UNSCHEDULE = """
    SELECT set_config('silas.platform', 'on', true);
    DELETE FROM bus_queuemessage WHERE kind IN ('retention', 'checkpoint', 'file_cleanup');
    SELECT set_config('silas.platform', '', true);
"""


class Migration(migrations.Migration):
    dependencies = [("bus", "0002_due_work"), ("tenants", "0003_more_kinds_of_policy_are_sealed")]

    operations = [migrations.RunSQL(SCHEDULE, UNSCHEDULE)]
