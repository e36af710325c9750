"""Made a database function that 0006 drops; kept because installations have it in their history."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("guard", "0001_squashed"),
        ("audit", "0001_squashed"),
        ("bus", "0001_squashed"),
    ]

    operations = []
