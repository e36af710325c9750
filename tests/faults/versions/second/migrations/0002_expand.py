from django.db import migrations

from tests.faults.versions.room import alter


class Migration(migrations.Migration):
    dependencies = [("versions", "0001_writer")]
    lock_reason = "A column without a default is added in a moment."
    operations = [alter("ADD COLUMN written_by text")]
