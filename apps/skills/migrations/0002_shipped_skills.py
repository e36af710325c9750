from django.db import migrations, models

from apps.skills import append_only


class Migration(migrations.Migration):
    """What ships with the installation is listed by the tables' owner, and nothing else may be called so."""

    dependencies = [("skills", "0001_squashed")]

    operations = [
        migrations.CreateModel(
            name="ShippedSkill",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=64)),
                ("manifest", models.JSONField()),
                ("body", models.TextField()),
                ("files", models.JSONField()),
            ],
        ),
        migrations.RunSQL(append_only.SHIPPED, append_only.SHIPPED_REVERSE),
    ]
