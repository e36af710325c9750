"""Adds whether an operator has closed a company."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0012_apps_register_themselves")]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="closed",
            field=models.CharField(
                blank=True,
                choices=[("", "Open"), ("closed", "Closed"), ("moved", "Moved to another installation")],
                db_default="",
                default="",
                editable=False,
                max_length=8,
            ),
        )
    ]
