"""Say the names of these tables in English, in one and in many."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('connections', '0003_plain_labels'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='itrequest',
            options={'base_manager_name': 'objects', 'verbose_name': 'IT request', 'verbose_name_plural': 'IT requests'},
        ),
    ]
