import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from apps.work import knowledge_sql
from kernel.tenancy.migrations import RowSecurity


class Migration(migrations.Migration):
    """What a worker may not write, it asks of a web process (docs/adr 0085)."""

    dependencies = [("work", "0007_earned_thresholds")]

    operations = [
        migrations.CreateModel(
            name="KnowledgeEffect",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("call_digest", models.CharField(max_length=64)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("asked", "Waits for a web process"),
                            ("done", "Carried out"),
                            ("refused", "Refused"),
                            ("withdrawn", "Nobody waited any longer"),
                        ],
                        default="asked",
                        max_length=10,
                    ),
                ),
                ("answer", models.JSONField(default=dict)),
                ("claimed_until", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenants.tenant"
                    ),
                ),
                (
                    "work_item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="work.workitem"
                    ),
                ),
            ],
            options={"ordering": ["created_at"], "abstract": False, "base_manager_name": "objects"},
        ),
        migrations.AddIndex(
            model_name="knowledgeeffect",
            index=models.Index(
                condition=models.Q(("state", "asked")), fields=["tenant", "created_at"], name="knowledge_effect_asked"
            ),
        ),
        migrations.AddConstraint(
            model_name="knowledgeeffect",
            constraint=models.UniqueConstraint(fields=("work_item", "call_digest"), name="knowledge_effect_once"),
        ),
        RowSecurity("work_knowledgeeffect"),
        migrations.RunSQL(knowledge_sql.WAITING_TENANTS, knowledge_sql.WAITING_TENANTS_REVERSE),
    ]
