from django.db import migrations, models

from apps.sessions.desk.desk_sql import REOPEN_ANY, REOPEN_ANY_REVERSE


class Migration(migrations.Migration):
    """A conversation may rest until its visitor answers, without a time."""

    dependencies = [
        ("silas_sessions", "0041_insights"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="deskstate", name="desk_snoozed_until"),
        migrations.AddConstraint(
            model_name="deskstate",
            constraint=models.CheckConstraint(
                condition=models.Q(("status", "snoozed"), ("until", None), _connector="OR"), name="desk_snoozed_until"
            ),
        ),
        migrations.RunSQL(REOPEN_ANY, REOPEN_ANY_REVERSE),
    ]
