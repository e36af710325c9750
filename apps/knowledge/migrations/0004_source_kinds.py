"""Sources are of several kinds: `address` becomes `location`, and an account may be needed to read one."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models

WITHOUT_ACCOUNT = ("website", "folder")
KINDS = [
    ("website", "Website"),
    ("folder", "Folder"),
    ("s3", "S3 bucket"),
    ("notion", "Notion"),
    ("confluence", "Confluence"),
    ("zendesk", "Zendesk help center"),
    ("google_drive", "Google Drive"),
]


class Migration(migrations.Migration):
    dependencies: ClassVar = [("knowledge", "0003_provider_vectors")]

    operations: ClassVar = [
        migrations.RemoveConstraint(model_name="knowledgesource", name="knowledge_source_once"),
        migrations.RenameField(model_name="knowledgesource", old_name="address", new_name="location"),
        migrations.AlterField(
            model_name="knowledgesource", name="location", field=models.CharField(blank=True, max_length=500)
        ),
        migrations.AddField(
            model_name="knowledgesource",
            name="kind",
            field=models.CharField(choices=KINDS, default="website", max_length=12),
        ),
        migrations.AddField(
            model_name="knowledgesource", name="connection_id", field=models.UUIDField(null=True)
        ),
        migrations.AlterModelOptions(
            name="knowledgesource",
            options={"base_manager_name": "objects", "ordering": ["kind", "location", "pk"]},
        ),
        migrations.AddConstraint(
            model_name="knowledgesource",
            constraint=models.UniqueConstraint(
                fields=("collection", "kind", "connection_id", "location"),
                name="knowledge_source_once",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="knowledgesource",
            constraint=models.CheckConstraint(
                condition=models.Q(kind__in=WITHOUT_ACCOUNT, connection_id=None)
                | (~models.Q(kind__in=WITHOUT_ACCOUNT) & models.Q(connection_id__isnull=False)),
                name="knowledge_source_has_account",
            ),
        ),
    ]
