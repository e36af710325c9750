from django.db import migrations, models

from apps.approvals.sql import append_only


class Migration(migrations.Migration):
    """Approvers' keys carry the installation key's certificate; it replaces the endorsement by the key before."""

    dependencies = [("approvals", "0003_a_use_is_spent_for_its_own_subject")]

    operations = [
        migrations.AddField(
            model_name="approverkey",
            name="certificate",
            field=models.CharField(blank=True, help_text="Signature of the installation key, base64", max_length=120),
        ),
        migrations.RemoveField(model_name="approverkey", name="endorsement"),
        migrations.RunSQL(append_only.CERTIFIED_KEYS, migrations.RunSQL.noop),
    ]
