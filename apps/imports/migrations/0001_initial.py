import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
import django.db.models.lookups
import uuid
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity, Tables


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("imports", "0001_imports"),
    ]

    dependencies = [
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='ImportRun',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('system', models.CharField(choices=[('chatwoot', 'Chatwoot'), ('intercom', 'Intercom'), ('zendesk', 'Zendesk')], max_length=10)),
                    ('name', models.CharField(max_length=200)),
                    ('dry_run', models.BooleanField()),
                    ('content', models.BinaryField(null=True)),
                    ('state', models.CharField(choices=[('running', 'Running'), ('done', 'Done'), ('failed', 'Failed')], default='running', max_length=8)),
                    ('counts', models.JSONField(default=dict)),
                    ('problems', models.JSONField(default=list)),
                    ('by', models.CharField(max_length=80)),
                    ('once', models.UUIDField()),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('ended_at', models.DateTimeField(null=True)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['-created_at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'once'), name='import_run_once')],
                },
            ),
            migrations.CreateModel(
                name='ImportPart',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('number', models.PositiveIntegerField()),
                    ('found', models.TextField()),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='imports.importrun')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('run', 'number'), name='import_part_once'), models.CheckConstraint(condition=django.db.models.lookups.LessThanOrEqual(django.db.models.functions.text.Length('found'), 20000000), name='import_part_is_bounded')],
                },
            ),
        ),
        RowSecurity("imports_importrun"),
        RowSecurity("imports_importpart"),
    ]
