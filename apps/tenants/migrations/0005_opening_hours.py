"""When people answer in a deployment's conversations, and what is said when nobody does."""

from __future__ import annotations

from django.db import migrations, models

_HOURS = "When people answer, by day; empty when somebody always does"
_ZONE = "Of the opening hours; the company's when empty"
_AFTER = "What a visitor reads who wants a person outside of the opening hours"


class Migration(migrations.Migration):
    dependencies = [("tenants", "0004_message_keys")]

    operations = [
        migrations.AddField(
            "deployment", "opening_hours", models.JSONField(blank=True, default=dict, help_text=_HOURS)
        ),
        migrations.AddField(
            "deployment",
            "timezone",
            models.CharField(blank=True, default="", help_text=_ZONE, max_length=60),
            preserve_default=False,
        ),
        migrations.AddField(
            "deployment",
            "after_hours",
            models.CharField(blank=True, default="", help_text=_AFTER, max_length=500),
            preserve_default=False,
        ),
    ]
