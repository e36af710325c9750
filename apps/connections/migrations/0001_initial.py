import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models

import apps.connections.models
from apps.bus.enums import Kind
from apps.bus.sql.due import schedule_rows, unschedule_rows
from kernel.tenancy.migrations import RowSecurity, Tables

KEYRING = "SELECT '00000000-0000-0000-0000-000000000000'::uuid, 'keyring', statement_timestamp()"


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("connections", "0001_squashed"),
        ("connections", "0002_callback"),
        ("connections", "0002_work_is_due_on_the_bus"),
        ("connections", "0003_discovery"),
        ("connections", "0003_plain_labels"),
        ("connections", "0004_plural_names"),
        ("connections", "0004_usual_account"),
        ("connections", "0005_it_request"),
    ]

    dependencies = [
        ("bus", "0001_initial"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='Connection',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=120)),
                    ('domain', models.CharField(blank=True, max_length=120)),
                    ('skill', models.CharField(max_length=100)),
                    ('skill_name', models.CharField(max_length=64)),
                    ('provider', models.CharField(blank=True, max_length=120)),
                    ('identity', models.CharField(blank=True, max_length=200)),
                    ('auth_strategy', models.CharField(choices=[('device_code', 'Code entered at the service'), ('browser_redirect', 'Sign-in at the service'), ('secure_input', 'Secret entered here')], max_length=20)),
                    ('permissions', models.JSONField(default=list)),
                    ('permissions_granted', models.JSONField(default=list)),
                    ('permissions_available', models.JSONField(default=list)),
                    ('initial_permissions', models.JSONField(default=list)),
                    ('settings', models.JSONField(default=dict)),
                    ('status', models.CharField(choices=[('proposed', 'Proposed'), ('connecting', 'Connecting'), ('active', 'Active'), ('paused', 'Paused'), ('failed', 'Not working'), ('removed', 'Removed')], default='proposed', max_length=12)),
                    ('failure', models.JSONField(blank=True, null=True)),
                    ('health_check', models.CharField(default='*/30 * * * *', max_length=100)),
                    ('token_expires_at', models.DateTimeField(blank=True, null=True)),
                    ('refresh_token_expires_at', models.DateTimeField(blank=True, null=True)),
                    ('last_health_check', models.DateTimeField(blank=True, null=True)),
                    ('last_refresh', models.DateTimeField(blank=True, null=True)),
                    ('last_used', models.DateTimeField(blank=True, null=True)),
                    ('next_check_at', models.DateTimeField(blank=True, null=True)),
                    ('warned_at', models.DateTimeField(blank=True, null=True)),
                    ('recovered', models.BooleanField(default=False)),
                    ('discovering', models.BooleanField(db_default=False, default=False)),
                    ('is_usual', models.BooleanField(db_default=False, default=False)),
                    ('requested_by', models.CharField(blank=True, max_length=60)),
                    ('callback', models.CharField(blank=True, max_length=300)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['-created_at', '-id'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(fields=['tenant', 'skill_name'], name='connection_by_skill')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('is_usual', True)), fields=('tenant', 'skill_name'), name='connection_usual_once')],
                },
            ),
            migrations.CreateModel(
                name='ItRequest',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('to', models.CharField(blank=True, max_length=254)),
                    ('subject', models.CharField(max_length=200)),
                    ('text', models.TextField()),
                    ('work_item_id', models.UUIDField(blank=True, null=True)),
                    ('changed_by', models.CharField(max_length=60)),
                    ('changed_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('connection', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='it_request', to='connections.connection')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'verbose_name': 'IT request',
                    'verbose_name_plural': 'IT requests',
                },
            ),
            migrations.CreateModel(
                name='OnceGrant',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('permissions', models.JSONField()),
                    ('payload', models.JSONField()),
                    ('token_id', models.UUIDField(unique=True)),
                    ('expires_at', models.DateTimeField()),
                    ('used_at', models.DateTimeField(blank=True, null=True)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('connection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='once', to='connections.connection')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                },
            ),
            migrations.CreateModel(
                name='SetupRun',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('purpose', models.CharField(choices=[('setup', 'First connection'), ('reconnect', 'Reconnect'), ('widen', 'More access')], max_length=12)),
                    ('state', models.CharField(choices=[('waiting', 'Waiting'), ('running', 'Running'), ('asking', 'Asking'), ('done', 'Done'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='waiting', max_length=12)),
                    ('wanted', models.JSONField(default=list)),
                    ('identity_hint', models.JSONField(default=dict)),
                    ('step_id', models.CharField(blank=True, max_length=60)),
                    ('step', models.JSONField(blank=True, null=True)),
                    ('failure', models.JSONField(blank=True, null=True)),
                    ('summary', models.JSONField(blank=True, null=True)),
                    ('ignored', models.PositiveIntegerField(default=0)),
                    ('state_token', models.UUIDField(default=apps.connections.models.new_ref, unique=True)),
                    ('browser', models.CharField(blank=True, max_length=64)),
                    ('card_id', models.UUIDField(blank=True, null=True)),
                    ('started_by', models.CharField(blank=True, max_length=60)),
                    ('begins_at', models.DateTimeField(blank=True, null=True)),
                    ('deadline', models.DateTimeField()),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('ended_at', models.DateTimeField(blank=True, null=True)),
                    ('connection', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='setups', to='connections.connection')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['-created_at', '-id'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(condition=models.Q(('state__in', ['waiting', 'running', 'asking'])), fields=('connection',), name='setup_one_at_a_time')],
                },
            ),
            migrations.CreateModel(
                name='SetupAnswer',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('step_id', models.CharField(max_length=60)),
                    ('sealed', models.BinaryField()),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('setup', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='answers', to='connections.setuprun')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('setup', 'step_id'), name='setup_answer_once')],
                },
            ),
            migrations.CreateModel(
                name='PendingSecret',
                fields=[
                    ('id', models.UUIDField(default=apps.connections.models.new_ref, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=60)),
                    ('expires_at', models.DateTimeField()),
                    ('stored_at', models.DateTimeField(blank=True, null=True)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('setup', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pending', to='connections.setuprun')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('setup', 'name'), name='pending_secret_once')],
                },
            ),
            migrations.CreateModel(
                name='Credential',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=60)),
                    ('backend', models.CharField(choices=[('database', 'Database'), ('keyring', 'Keyring'), ('vault', 'Vault')], default='database', max_length=12)),
                    ('sealed', models.BinaryField()),
                    ('changed_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('connection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='credentials', to='connections.connection')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('setup', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='connections.setuprun')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(condition=models.Q(('setup', None)), fields=('connection', 'name'), name='credential_once'), models.UniqueConstraint(condition=models.Q(('setup__isnull', False)), fields=('setup', 'name'), name='credential_partial_once')],
                },
            ),
        ),
        RowSecurity("connections_connection"),
        RowSecurity("connections_itrequest"),
        RowSecurity("connections_oncegrant"),
        RowSecurity("connections_setuprun"),
        RowSecurity("connections_setupanswer"),
        RowSecurity("connections_pendingsecret"),
        RowSecurity("connections_credential"),
        migrations.RunSQL(schedule_rows(Kind.KEYRING_CLEANUP, KEYRING), unschedule_rows(Kind.KEYRING_CLEANUP)),
    ]
