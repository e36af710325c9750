from django.db import migrations

from apps.skills import append_only


class Migration(migrations.Migration):
    """What ships is listed in `bundled.json` alone; the function that asks for it gets it by every `migrate`."""

    dependencies = [("skills", "0002_shipped_skills")]

    operations = [
        migrations.RunSQL(append_only.NO_TABLE, append_only.SHIPPED),
        migrations.DeleteModel(name="ShippedSkill"),
    ]
