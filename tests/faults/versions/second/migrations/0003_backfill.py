from django.db import migrations

from tests.faults.versions.room import backfill


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("versions", "0002_expand")]
    lock_reason = "Each transaction holds a few rows."
    operations = [backfill()]
