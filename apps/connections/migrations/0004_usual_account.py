from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("connections", "0003_discovery")]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="is_usual",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddConstraint(
            model_name="connection",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_usual", True)), fields=("tenant", "skill_name"), name="connection_usual_once"
            ),
        ),
    ]
