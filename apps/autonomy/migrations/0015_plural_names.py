"""Say the names of these tables in English, in one and in many."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('autonomy', '0014_webhooks_of_all_events'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='outbox',
            options={'base_manager_name': 'objects', 'ordering': ['created_at'], 'verbose_name': 'outgoing message', 'verbose_name_plural': 'outgoing messages'},
        ),
    ]
