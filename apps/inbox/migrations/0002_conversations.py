import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity, Tables


class Migration(migrations.Migration):
    initial = True

    # None that `0001_initial` replaces: where that one ran, they stand as applied.
    replaces = [
        ("inbox", "0003_reading"),
        ("inbox", "0004_wording_of_assignment"),
        ("inbox", "0005_mentions"),
        ("inbox", "0006_saved_views"),
        ("inbox", "0007_inbox_rules"),
        ("inbox", "0008_sla"),
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("inbox", "0001_initial"),
        ("silas_sessions", "0001_initial"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='ReadMark',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('seq', models.PositiveBigIntegerField()),
                    ('session', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='silas_sessions.chatsession')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('session', 'user'), name='read_mark_once')],
                },
            ),
            migrations.CreateModel(
                name='Mention',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('read', models.BooleanField(default=False)),
                    ('note', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='mentions', to='silas_sessions.note')),
                    ('session', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='silas_sessions.chatsession')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(condition=models.Q(('read', False)), fields=['user'], name='mention_unread')],
                    'constraints': [models.UniqueConstraint(fields=('note', 'user'), name='mention_once')],
                },
            ),
            migrations.CreateModel(
                name='SlaMoment',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('event', models.CharField(choices=[('wanted', 'A person is wanted'), ('taken_over', 'A person has taken over'), ('asked', 'The visitor wrote to the team'), ('replied', 'The team replied'), ('snoozed', 'Snoozed'), ('resolved', 'Resolved'), ('reopened', 'Reopened'), ('handed_back', 'Handed back to the bot')], max_length=12)),
                    ('at', models.DateTimeField()),
                    ('until', models.DateTimeField(null=True)),
                    ('session', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='silas_sessions.chatsession')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'verbose_name': 'SLA moment',
                    'verbose_name_plural': 'SLA moments',
                    'ordering': ['session', 'at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                },
            ),
            migrations.CreateModel(
                name='SlaClock',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('target', models.CharField(choices=[('first_reply', 'First reply'), ('next_reply', 'Next reply'), ('resolution', 'Resolution')], max_length=12)),
                    ('outcome', models.CharField(choices=[('running', 'Running'), ('met', 'Met'), ('missed', 'Missed'), ('cancelled', 'Canceled')], default='running', max_length=10)),
                    ('started_at', models.DateTimeField()),
                    ('due_at', models.DateTimeField(null=True)),
                    ('ended_at', models.DateTimeField(null=True)),
                    ('session', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='silas_sessions.chatsession')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('policy', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='inbox.slapolicy')),
                ],
                options={
                    'verbose_name': 'SLA clock',
                    'verbose_name_plural': 'SLA clocks',
                    'ordering': ['session', 'started_at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(condition=models.Q(('ended_at', None)), fields=['tenant', 'due_at'], name='sla_clock_running'), models.Index(fields=['tenant', 'started_at'], name='sla_clock_by_start')],
                    'constraints': [models.UniqueConstraint(fields=('session', 'target', 'started_at'), name='sla_clock_once'), models.CheckConstraint(condition=models.Q(models.Q(('outcome__in', ['met', 'cancelled']), _negated=True), ('ended_at__isnull', False), _connector='OR'), name='sla_clock_outcome_has_end'), models.CheckConstraint(condition=models.Q(models.Q(('outcome', 'running'), _negated=True), ('ended_at', None), _connector='OR'), name='sla_clock_runs_without_end')],
                },
            ),
        ),
        RowSecurity("inbox_readmark"),
        RowSecurity("inbox_mention"),
        RowSecurity("inbox_slamoment"),
        RowSecurity("inbox_slaclock"),
    ]
