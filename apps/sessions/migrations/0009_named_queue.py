"""Where somebody who waits for a person waits, and why they do."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("silas_sessions", "0008_message_nonces")]

    operations = [
        migrations.AddField("chatsession", "wanted_because", models.CharField(blank=True, default="", max_length=80), preserve_default=False),
        migrations.AddField("chatsession", "wanted_queue", models.CharField(blank=True, default="", max_length=80), preserve_default=False),
    ]
