"""Drops when a letter is due, which its message on the bus carries; `bus.0002_due_work` owed those that waited."""

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [("tenants", "0003_more_kinds_of_policy_are_sealed"), ("bus", "0002_due_work")]

    operations = [
        migrations.RemoveIndex(model_name="letter", name="letter_is_due"),
        # So that the way back fills the column.
        migrations.AlterField(model_name="letter", name="due_at", field=models.DateTimeField(db_default=Now())),
        migrations.RemoveField(model_name="letter", name="due_at"),
    ]
