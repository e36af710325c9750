from django.db import migrations

from tests.faults.versions.room import alter


class Migration(migrations.Migration):
    dependencies = [("silas_sessions", "0001_initial"), ("work", "0001_initial")]
    operations = [alter("ADD COLUMN writer text")]
