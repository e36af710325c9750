"""Word the labels and help texts of work plainly. Changes the state of models only, no table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("work", "0007_places_of_a_tenant"),
    ]

    operations = [
        migrations.AlterField(
            model_name="batchitem",
            name="unusual",
            field=models.BooleanField(default=False, help_text="Differs from the other lines"),
        ),
        migrations.AlterField(
            model_name="course",
            name="deliveries",
            field=models.PositiveIntegerField(default=0, help_text="How often it was queued for the executors"),
        ),
        migrations.AlterField(
            model_name="course",
            name="waiting_for",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "nothing"),
                    ("awaiting_planner_guidance", "advice from the planner"),
                    ("awaiting_replan", "another plan"),
                    ("awaiting_review", "a review"),
                ],
                max_length=32,
            ),
        ),
        migrations.AlterField(
            model_name="goalcycle",
            name="outcome",
            field=models.CharField(
                choices=[
                    ("healthy", "all checks passed"),
                    ("failed", "a check failed; reported only"),
                    ("spawned", "a check failed; repair started under the standing approval"),
                    ("asked", "a check failed; repair waits for approval"),
                    ("under_way", "a check failed; an earlier repair is still running"),
                    ("parked", "budget used up; parked until a person resumes it"),
                ],
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="knowledgeeffect",
            name="state",
            field=models.CharField(
                choices=[
                    ("asked", "Waiting for the trusted worker"),
                    ("done", "Carried out"),
                    ("refused", "Refused"),
                    ("withdrawn", "Timed out"),
                ],
                default="asked",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="planning",
            name="purpose",
            field=models.CharField(
                choices=[
                    ("", "nothing"),
                    ("awaiting_planner_guidance", "advice from the planner"),
                    ("awaiting_replan", "another plan"),
                    ("awaiting_review", "a review"),
                ],
                max_length=32,
            ),
        ),
        migrations.AlterField(
            model_name="poolslot",
            name="fence",
            field=models.BigIntegerField(default=-1, help_text="The lease under which it took the slot"),
        ),
        migrations.AlterField(
            model_name="poolslot",
            name="position",
            field=models.BigIntegerField(help_text="Position in the queue; conflicting items run in this order"),
        ),
        migrations.AlterField(
            model_name="undoentry",
            name="calls",
            field=models.JSONField(help_text="The inverse calls in the order of the calls: tool, args, skill"),
        ),
        migrations.AlterField(
            model_name="workitem",
            name="due_at",
            field=models.DateTimeField(help_text="When a scheduled goal is checked next", null=True),
        ),
        migrations.AlterField(
            model_name="workitem",
            name="reason",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "no reason"),
                    ("approval_denied", "rejected by a person"),
                    ("approval_expired", "not decided in time"),
                    ("execution_blocked_no_approval", "no valid approval"),
                    ("budget_exceeded", "budget used up"),
                    ("verification_failed", "verification failed"),
                    ("gate_blocked", "blocked by policy"),
                    ("awaiting_review", "waiting for review"),
                    ("review_declined", "stopped in review"),
                    ("review_expired", "review timed out"),
                    ("halted", "stopped by a person"),
                    ("tool_failure", "a tool failed"),
                    ("effect_uncertain", "unclear whether the action took effect"),
                    ("handed_over", "handed over, not verified"),
                    ("linkage_missing", "what this builds on is missing"),
                    ("child_failed", "one of its tasks failed"),
                    ("dependency_not_done", "an earlier task was not done"),
                    ("left_out", "left out by a person"),
                    ("delivery_failed", "could not be delivered to a worker"),
                    ("cancelled", "cancelled"),
                    ("replanned", "replaced by another plan"),
                ],
                max_length=40,
            ),
        ),
    ]
