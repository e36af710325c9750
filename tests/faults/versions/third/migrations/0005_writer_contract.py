from django.db import migrations

from tests.faults.versions.room import alter


class Migration(migrations.Migration):
    dependencies = [("versions", "0004_backfill_rest")]
    lock_reason = "A column is dropped in a moment."
    operations = [alter("DROP COLUMN writer")]
