"""Word the labels and help texts of automations plainly. Changes the models' state only, no table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("autonomy", "0006_due_on_the_bus"),
    ]

    operations = [
        migrations.AlterField(
            model_name="autonomoussession",
            name="awaits",
            field=models.UUIDField(help_text="The work item that waits for a person's approval", null=True),
        ),
        migrations.AlterField(
            model_name="autonomoussession",
            name="context",
            field=models.TextField(blank=True, help_text="What another session passed on to this one: external text"),
        ),
        migrations.AlterField(
            model_name="autonomoussession",
            name="status",
            field=models.CharField(
                choices=[
                    ("queued", "Queued"),
                    ("running", "Running"),
                    ("awaiting_approval", "Waiting for approval"),
                    ("completed", "Done"),
                    ("halted", "Stopped"),
                    ("failed", "Failed"),
                    ("cancelled", "Canceled"),
                ],
                default="queued",
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="autonomoussession",
            name="trigger_kind",
            field=models.CharField(
                choices=[
                    ("cron", "On a schedule"),
                    ("interval", "At an interval"),
                    ("event", "When something happens"),
                    ("watch", "When a document is added"),
                    ("chain", "After another task"),
                    ("goal_check", "After a goal check"),
                    ("manual", "Manually"),
                    ("delegated", "For another run"),
                    ("escalated", "Escalated by a smaller model"),
                ],
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="autonomoussession",
            name="warned_at",
            field=models.DateTimeField(help_text="When the warning was sent that most of a limit is used", null=True),
        ),
        migrations.AlterField(
            model_name="autonomysettings",
            name="limits",
            field=models.JSONField(
                blank=True, default=dict, help_text="What one run may use at most, whatever its task allows"
            ),
        ),
        migrations.AlterField(
            model_name="contextproposal",
            name="state",
            field=models.CharField(
                choices=[("proposed", "Waiting for a decision"), ("accepted", "Accepted"), ("rejected", "Rejected")],
                default="proposed",
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="finding",
            name="severity",
            field=models.CharField(
                choices=[("info", "Info"), ("warn", "Warning"), ("critical", "Critical")], default="info", max_length=8
            ),
        ),
        migrations.AlterField(
            model_name="freedomproposal",
            name="state",
            field=models.CharField(
                choices=[
                    ("open", "Waiting for a decision"),
                    ("applied", "Applied"),
                    ("declined", "Declined"),
                    ("tightened", "Tightened instead"),
                    ("refused", "No longer applicable"),
                    ("expired", "Expired"),
                ],
                default="open",
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="initiativesettings",
            name="most_an_hour",
            field=models.PositiveSmallIntegerField(default=6, help_text="New suggestions an hour for each deployment"),
        ),
        migrations.AlterField(
            model_name="initiativesettings",
            name="most_open",
            field=models.PositiveSmallIntegerField(default=5, help_text="Open suggestions for each deployment"),
        ),
        migrations.AlterField(
            model_name="initiativesettings",
            name="most_proposals_a_week",
            field=models.PositiveSmallIntegerField(
                default=3, help_text="Proposed threshold changes a week for each deployment"
            ),
        ),
        migrations.AlterField(
            model_name="memoryproposal",
            name="kind",
            field=models.CharField(
                choices=[
                    ("memory", "The company's memory"),
                    ("knowledge", "The company's documents"),
                    ("preference", "The bot's behavior"),
                ],
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="memoryproposal",
            name="result_ref",
            field=models.CharField(blank=True, help_text="Where it is stored: memory:… or document:…", max_length=80),
        ),
        migrations.AlterField(
            model_name="memoryproposal",
            name="state",
            field=models.CharField(
                choices=[("proposed", "Waiting for a decision"), ("kept", "Kept"), ("dismissed", "Dismissed")],
                default="proposed",
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="outbox",
            name="channel",
            field=models.CharField(choices=[("email", "Email"), ("webhook", "Webhook")], max_length=8),
        ),
        migrations.AlterField(
            model_name="outbox",
            name="state",
            field=models.CharField(
                choices=[("waiting", "Waiting to be sent"), ("sent", "Sent"), ("given_up", "Could not be sent")],
                default="waiting",
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="outcome",
            name="kind",
            field=models.CharField(
                choices=[
                    ("approved", "Approved"),
                    ("edit_selection", "Approved with changes"),
                    ("declined", "Declined"),
                    ("undo", "Undone"),
                    ("dismissed", "Dismissed"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="outcome",
            name="shortened",
            field=models.BooleanField(default=False, help_text="A person shortened it by a third or more"),
        ),
        migrations.AlterField(
            model_name="precedent",
            name="state",
            field=models.CharField(
                choices=[("open", "Observed"), ("promoted", "Proposed as a rule"), ("dismissed", "Dismissed")],
                default="open",
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="preference",
            name="state",
            field=models.CharField(
                choices=[("proposed", "Waiting for a decision"), ("kept", "Kept"), ("dismissed", "Dismissed")],
                default="proposed",
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="suggestion",
            name="action",
            field=models.CharField(
                choices=[
                    ("look", "A person looks at it"),
                    ("promote", "A pattern is proposed as a rule"),
                    ("plan", "A plan is proposed"),
                ],
                max_length=8,
            ),
        ),
        migrations.AlterField(
            model_name="suggestion",
            name="source",
            field=models.CharField(
                choices=[
                    ("idle_heartbeat", "Regular check"),
                    ("post_execution", "Work completed"),
                    ("goal_monitor", "Goal check"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="suggestion",
            name="state",
            field=models.CharField(
                choices=[
                    ("open", "Waiting for a decision"),
                    ("accepted", "Accepted"),
                    ("dismissed", "Dismissed"),
                    ("deferred", "Snoozed"),
                    ("muted", "Muted"),
                    ("expired", "Expired"),
                ],
                default="open",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="task",
            name="critical",
            field=models.BooleanField(
                default=False, help_text="Keeps running while non-critical tasks are paused"
            ),
        ),
        migrations.AlterField(
            model_name="task",
            name="delegates_to",
            field=models.JSONField(blank=True, default=list, help_text="Tasks to which its planner may delegate"),
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
                ],
                default="",
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="trigger",
            name="kind",
            field=models.CharField(
                choices=[
                    ("cron", "On a schedule"),
                    ("interval", "At an interval"),
                    ("event", "When something happens"),
                    ("watch", "When a document is added"),
                    ("chain", "After another task"),
                    ("goal_check", "After a goal check"),
                    ("manual", "Manually"),
                    ("delegated", "For another run"),
                    ("escalated", "Escalated by a smaller model"),
                ],
                max_length=12,
            ),
        ),
    ]
