"""Tells the ends of all chains by one function, and finds a chain's checkpoints by an index."""

from django.db import migrations, models

from apps.audit.sql import heads


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_squashed")]

    operations = [
        migrations.AddIndex(
            model_name="auditcheckpoint",
            index=models.Index(fields=["chain", "seq"], name="audit_checkpoint_by_chain"),
        ),
        migrations.RunSQL(heads.HEADS, heads.HEADS_REVERSE),
    ]
