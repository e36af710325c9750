import uuid

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions.datetime import Now

from kernel.tenancy.migrations import RowSecurity


class Migration(migrations.Migration):
    dependencies = [("connections", "0004_usual_account"), ("tenants", "0052_datakey")]

    operations = [
        migrations.CreateModel(
            name="ItRequest",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("to", models.CharField(blank=True, max_length=254)),
                ("subject", models.CharField(max_length=200)),
                ("text", models.TextField()),
                ("work_item_id", models.UUIDField(blank=True, null=True)),
                ("changed_by", models.CharField(max_length=60)),
                ("changed_at", models.DateTimeField(db_default=Now())),
                (
                    "connection",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="it_request",
                        to="connections.connection",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
            options={"abstract": False, "base_manager_name": "objects"},
        ),
        RowSecurity("connections_itrequest"),
    ]
