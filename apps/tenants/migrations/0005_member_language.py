"""Adds the language that a member has chosen."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0004_letters_are_owed_on_the_bus")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="language",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Code of the person's language; empty for the browser's",
                max_length=12,
            ),
        ),
    ]
