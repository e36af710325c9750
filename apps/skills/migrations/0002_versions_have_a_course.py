import django.db.models.deletion
from django.db import migrations, models

from apps.skills import append_only

_STATUSES = [
    ("proposed", "Waits for a yes"),
    ("active", "In use"),
    ("disabled", "Switched off"),
    ("withdrawn", "Withdrawn"),
]
_SOURCES = [
    ("bundled", "Ships with the installation"),
    ("folder", "A folder"),
    ("archive", "An archive"),
    ("git", "A git repository"),
    ("maker", "Written here"),
    ("package", "A signed package"),
]


class Migration(migrations.Migration):
    """What is installed so far shipped with the installation, and stays in use."""

    dependencies = [
        ("approvals", "0041_alerts"),
        ("skills", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="skillversion",
            name="status",
            field=models.CharField(choices=_STATUSES, default="active", max_length=12),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="skillversion",
            name="source",
            field=models.CharField(choices=_SOURCES, default="bundled", max_length=12),
            preserve_default=False,
        ),
        migrations.AddField(model_name="skillversion", name="report", field=models.JSONField(default=dict)),
        migrations.AddField(
            model_name="skillversion", name="requested_by", field=models.CharField(blank=True, default="", max_length=120),
            preserve_default=False,
        ),
        migrations.AddField(model_name="skillversion", name="card_id", field=models.UUIDField(null=True)),
        migrations.AddField(
            model_name="skillversion",
            name="approval_token",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="approvals.approvaltoken",
            ),
        ),
        migrations.AddField(model_name="skillversion", name="activated_at", field=models.DateTimeField(null=True)),
        migrations.AddField(model_name="skillversion", name="claimed_until", field=models.DateTimeField(null=True)),
        migrations.RunSQL(append_only.COURSE, append_only.COURSE_REVERSE),
    ]
