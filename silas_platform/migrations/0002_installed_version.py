"""Adds the table of the versions that migrated this database."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("silas_platform", "0001_metrics")]

    operations = [
        migrations.CreateModel(
            name="InstalledVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.CharField(max_length=40)),
                ("migrated_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
    ]
