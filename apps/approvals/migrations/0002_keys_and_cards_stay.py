from django.db import migrations

from apps.approvals import append_only


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL(append_only.STAY, append_only.STAY_REVERSE),
    ]
