from django.db import migrations, models

from apps.skills import waiting_sql


class Migration(migrations.Migration):
    """Which proposals a web process has to try is asked every second: an index of their own."""

    dependencies = [("skills", "0002_versions_have_a_course")]

    operations = [
        migrations.AddIndex(
            model_name="skillversion",
            index=models.Index(
                condition=models.Q(status="proposed"), fields=["tenant", "created_at"], name="skill_proposed"
            ),
        ),
        migrations.RunSQL(waiting_sql.WAITING_TENANTS, waiting_sql.WAITING_TENANTS_REVERSE),
    ]
