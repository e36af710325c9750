"""Count the steps of a principal over all of its executions; reports are judged in Python alone."""

import uuid

import django.db.models.deletion
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity


class Migration(migrations.Migration):
    dependencies = [
        ("safety", "0001_squashed"),
        ("tenants", "0001_squashed"),
    ]

    operations = [
        migrations.RunSQL(
            """
            DROP FUNCTION IF EXISTS safety_report_at_once(uuid, uuid, text, text, uuid, timestamptz, uuid, int, text, text);
            DROP FUNCTION IF EXISTS safety_report(uuid, text, text, uuid, timestamptz);
            """,
            migrations.RunSQL.noop,
        ),
        migrations.CreateModel(
            name='StepWindow',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('principal', models.CharField(max_length=80)),
                ('steps', models.PositiveIntegerField(default=0)),
                ('started_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'constraints': [models.UniqueConstraint(fields=('tenant', 'principal'), name='safety_step_window_once')],
            },
        ),
        RowSecurity("safety_stepwindow"),
    ]
