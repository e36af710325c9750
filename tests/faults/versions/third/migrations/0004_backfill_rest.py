"""What the first version wrote while it ran beside the second."""

from django.db import migrations

from tests.faults.versions.room import backfill


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("versions", "0003_backfill")]
    lock_reason = "Each transaction holds a few rows."
    operations = [backfill()]
