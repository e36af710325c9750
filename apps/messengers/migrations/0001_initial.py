import django.core.validators
import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models

import apps.messengers.enums
from kernel.tenancy.migrations import RowSecurity, Tables


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("messengers", "0001_channels"),
        ("messengers", "0002_email_files"),
        ("messengers", "0003_cards_in_channels"),
        ("messengers", "0004_messages_of_conversations"),
        ("messengers", "0005_channels_without_migrations"),
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("approvals", "0001_initial"),
        ("silas_sessions", "0001_initial"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='Channel',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('kind', models.CharField(choices=apps.messengers.enums.channel_kinds, max_length=10)),
                    ('name', models.CharField(max_length=80)),
                    ('public_id', models.CharField(max_length=40, unique=True)),
                    ('settings', models.JSONField(default=dict)),
                    ('sealed', models.BinaryField(default=b'')),
                    ('kept', models.JSONField(default=dict)),
                    ('enabled', models.BooleanField(default=True)),
                    ('version', models.PositiveIntegerField(default=1)),
                    ('problem', models.CharField(blank=True, max_length=60)),
                    ('problem_at', models.DateTimeField(null=True)),
                    ('created_at', models.DateTimeField()),
                    ('removed_at', models.DateTimeField(null=True)),
                    ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.deployment')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['created_at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.CheckConstraint(condition=models.Q(('removed_at', None), models.Q(('enabled', False), ('sealed', b'')), _connector='OR'), name='removed_channel_is_off')],
                },
            ),
            migrations.CreateModel(
                name='ChannelThread',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('key', models.CharField(max_length=200)),
                    ('peer', models.CharField(max_length=254)),
                    ('peer_name', models.CharField(blank=True, max_length=120)),
                    ('proved_by', models.CharField(blank=True, choices=[('', 'Not verified'), ('gate', 'Verified by a gate'), ('signed', 'Signed by your website'), ('link', 'Confirmed by a link'), ('provider', 'Verified by the channel')], default='', max_length=8)),
                    ('reference', models.JSONField(default=dict)),
                    ('follows_widget', models.BooleanField(default=False)),
                    ('confirm_hash', models.CharField(blank=True, max_length=64)),
                    ('confirm_until', models.DateTimeField(null=True)),
                    ('opted_out_at', models.DateTimeField(null=True)),
                    ('last_received_at', models.DateTimeField(null=True)),
                    ('created_at', models.DateTimeField()),
                    ('channel', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='threads', to='messengers.channel')),
                    ('session', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='silas_sessions.chatsession')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('channel', 'key'), name='channel_thread_once'), models.UniqueConstraint(condition=models.Q(('confirm_hash', ''), _negated=True), fields=('confirm_hash',), name='channel_confirmation_once')],
                },
            ),
            migrations.CreateModel(
                name='ChannelMessage',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('direction', models.CharField(choices=[('in', 'Received'), ('out', 'Sent')], max_length=3)),
                    ('state', models.CharField(choices=[('waiting', 'Waiting'), ('sending', 'Sending'), ('sent', 'Sent'), ('delivered', 'Delivered'), ('read', 'Read'), ('failed', 'Failed'), ('received', 'Received'), ('ignored', 'Ignored')], max_length=10)),
                    ('external_id', models.CharField(blank=True, max_length=255)),
                    ('seq', models.PositiveBigIntegerField(null=True)),
                    ('problem', models.CharField(blank=True, max_length=60)),
                    ('attempts', models.PositiveSmallIntegerField(default=0)),
                    ('held', models.JSONField(null=True)),
                    ('created_at', models.DateTimeField()),
                    ('changed_at', models.DateTimeField()),
                    ('channel', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='messages', to='messengers.channel')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('thread', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='messengers.channelthread')),
                    ('session', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='silas_sessions.chatsession')),
                ],
                options={
                    'ordering': ['-created_at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(fields=['channel', '-created_at'], name='channel_message_by_time'), models.Index(models.F('channel'), models.F('external_id'), condition=models.Q(('direction', 'out'), models.Q(('external_id', ''), _negated=True)), name='channel_message_by_id')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('direction', 'in')), fields=('channel', 'external_id'), name='channel_message_in_once'), models.UniqueConstraint(condition=models.Q(('direction', 'out')), fields=('thread', 'session', 'seq'), name='channel_message_out_once')],
                },
            ),
            migrations.CreateModel(
                name='InboundMail',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('content', models.BinaryField()),
                    ('created_at', models.DateTimeField()),
                    ('channel', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='messengers.channel')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'verbose_name': 'inbound email',
                    'abstract': False,
                    'base_manager_name': 'objects',
                },
            ),
            migrations.CreateModel(
                name='ReadMail',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('found', models.TextField()),
                    ('mail', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='messengers.inboundmail')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('files', models.BinaryField(default=b'')),
                ],
                options={
                    'verbose_name': 'email that was read',
                    'abstract': False,
                    'base_manager_name': 'objects',
                },
            ),
            migrations.CreateModel(
                name='AccountCode',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('hashed', models.CharField(max_length=64)),
                    ('expires_at', models.DateTimeField()),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'user'), name='account_code_once_a_member')],
                },
            ),
            migrations.CreateModel(
                name='ApproverAccount',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('account', models.CharField(max_length=254)),
                    ('name', models.CharField(blank=True, max_length=120)),
                    ('linked_at', models.DateTimeField()),
                    ('last_verified_at', models.DateTimeField()),
                    ('certificate', models.CharField(max_length=120)),
                    ('channel', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='messengers.channel')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'ordering': ['linked_at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('channel', 'account'), name='approver_account_once'), models.UniqueConstraint(fields=('channel', 'user'), name='approver_account_once_a_member')],
                },
            ),
            migrations.CreateModel(
                name='CardNotice',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('account', models.CharField(blank=True, max_length=254)),
                    ('state', models.CharField(choices=[('waiting', 'Waiting'), ('sent', 'Sent'), ('failed', 'Failed')], default='waiting', max_length=8)),
                    ('face', models.CharField(max_length=64)),
                    ('progress', models.CharField(blank=True, max_length=80)),
                    ('external_id', models.CharField(blank=True, max_length=255)),
                    ('attempts', models.PositiveSmallIntegerField(default=0)),
                    ('problem', models.CharField(blank=True, max_length=60)),
                    ('due_at', models.DateTimeField()),
                    ('created_at', models.DateTimeField()),
                    ('card', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='approvals.card')),
                    ('channel', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='messengers.channel')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'ordering': ['created_at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('card', 'user', 'channel'), name='card_notice_once', nulls_distinct=False)],
                },
            ),
            migrations.CreateModel(
                name='CardPolicy',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('enabled', models.BooleanField(default=False)),
                    ('channels', models.JSONField(default=list)),
                    ('people', models.JSONField(default=list)),
                    ('decide_in_place', models.BooleanField(default=False)),
                    ('verified_days', models.PositiveSmallIntegerField(default=30, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(365)])),
                    ('certificate', models.CharField(max_length=120)),
                    ('version', models.PositiveIntegerField(default=1)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'verbose_name_plural': 'card policies',
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant',), name='card_policy_once'), models.CheckConstraint(condition=models.Q(('verified_days__range', (1, 365))), name='card_policy_days')],
                },
            ),
        ),
        RowSecurity("messengers_channel", lookup="public_id"),
        RowSecurity("messengers_channelthread", lookup="confirm_hash"),
        RowSecurity("messengers_channelmessage"),
        RowSecurity("messengers_inboundmail"),
        RowSecurity("messengers_readmail"),
        RowSecurity("messengers_accountcode"),
        RowSecurity("messengers_approveraccount"),
        RowSecurity("messengers_cardnotice"),
        RowSecurity("messengers_cardpolicy"),
    ]
