"""Tells the ends of all chains by one function, and finds a chain's checkpoints by an index."""

from django.db import migrations, models

from apps.audit import heads_sql


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_squashed")]

    operations = [
        migrations.AddIndex(
            model_name="auditcheckpoint",
            index=models.Index(fields=["chain", "seq"], name="audit_checkpoint_by_chain"),
        ),
        migrations.RunSQL(heads_sql.HEADS, heads_sql.HEADS_REVERSE),
    ]
