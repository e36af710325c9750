"""Moves what waits to be read to the bus, which carries claims now, and makes room for what workers have read."""

import uuid

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Length, Now
from django.db.models.lookups import LessThanOrEqual

from kernel.tenancy.migrations import RowSecurity

OWE = """
    SELECT set_config('silas.platform', 'on', true);
    INSERT INTO bus_queuemessage (
        id, tenant_id, queue, kind, message_id, trace_id, scope_id, content, sender, taint, urgency, error_code,
        origin_agent, state, attempts, consumer, fence, reason, available_at)
    SELECT gen_random_uuid(), intake.tenant_id, CASE WHEN typed THEN 'trusted' ELSE 'parse' END,
        CASE WHEN typed THEN 'document_index' ELSE 'document_intake' END, gen_random_uuid(), gen_random_uuid(),
        CASE WHEN typed THEN 'document_index:' ELSE 'document_intake:' END || intake.id, '', 'runtime', 'auth', 'informational', '', '', 'queued', 0, '', 0, '', statement_timestamp()
    FROM (SELECT id, tenant_id, kind IN ('text', 'again') AS typed FROM memory_intake WHERE ended_at IS NULL) intake;
    SELECT set_config('silas.platform', '', true);
    DROP FUNCTION IF EXISTS memory_waiting_tenants();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0002_marked_memories"),
        ("tenants", "0003_more_kinds_of_policy_are_sealed"),
        ("bus", "0002_due_work"),
    ]

    operations = [
        migrations.RunSQL(OWE, migrations.RunSQL.noop),
        migrations.RemoveIndex(model_name="intake", name="memory_intake_due"),
        migrations.RemoveField(model_name="intake", name="attempts"),
        migrations.RemoveField(model_name="intake", name="due_at"),
        migrations.CreateModel(
            name="ReadPart",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("url", models.CharField(blank=True, max_length=500)),
                ("total", models.PositiveIntegerField()),
                ("found", models.TextField()),
                ("created_at", models.DateTimeField(db_default=Now())),
                (
                    "intake",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="memory.intake",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "abstract": False,
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(fields=("intake", "url"), name="memory_readpart_once"),
                    models.CheckConstraint(
                        condition=LessThanOrEqual(Length("found"), 12000000), name="memory_readpart_is_bounded"
                    ),
                ],
            },
        ),
        RowSecurity("memory_readpart"),
    ]
