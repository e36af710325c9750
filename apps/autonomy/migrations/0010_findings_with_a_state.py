import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("autonomy", "0009_preferences_end_and_outcomes_name_people"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="finding",
            name="gone_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="finding",
            name="resolved_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="finding",
            name="resolved_by",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AlterField(
            model_name="task",
            name="playbook",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "Follow the prompt"),
                    ("unanswered", "Review unanswered questions"),
                    ("contradictions", "Check new documents for contradictions"),
                    ("goal", "Report the state of a goal"),
                    ("unhappy", "Digest of unhappy conversations"),
                    ("promises", "Follow up promises to customers"),
                    ("sla_risk", "Find customers who wait too long"),
                    ("refund_anomalies", "Find unusual refunds"),
                    ("weekly_insights", "Weekly insights in words"),
                    ("stale_documents", "Find outdated documents"),
                    ("translation", "Translate new articles"),
                    ("memory_review", "Review what is remembered"),
                ],
                default="",
                max_length=20,
            ),
        ),
    ]
