from django.db import migrations

from tests.faults.versions.room import alter


class Migration(migrations.Migration):
    dependencies = [("silas_sessions", "0001_squashed"), ("work", "0001_squashed")]
    operations = [alter("ADD COLUMN writer text")]
