import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity, Tables


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("events", "0001_events"),
    ]

    dependencies = [
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='Event',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('seq', models.PositiveBigIntegerField()),
                    ('type', models.CharField(max_length=40)),
                    ('deployment_id', models.UUIDField(null=True)),
                    ('session_id', models.UUIDField(null=True)),
                    ('data', models.JSONField(default=dict)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['seq'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'seq'), name='events_event_seq_once')],
                },
            ),
            migrations.CreateModel(
                name='EventHead',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('last_seq', models.PositiveBigIntegerField(default=0)),
                    ('deleted_seq', models.PositiveBigIntegerField(db_default=0, default=0)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant',), name='events_one_head')],
                },
            ),
        ),
        RowSecurity("events_event"),
        RowSecurity("events_eventhead"),
    ]
