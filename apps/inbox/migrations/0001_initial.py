import django.db.models.deletion
import django.db.models.functions.text
import uuid
from django.conf import settings
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity, Tables


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("inbox", "0001_teams"),
        ("inbox", "0002_macros"),
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='Team',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=60)),
                    ('queues', models.JSONField(blank=True, default=list)),
                    ('is_default', models.BooleanField(default=False)),
                    ('assignment', models.CharField(choices=[('off', "Don't assign automatically"), ('round_robin', 'Take turns'), ('least_load', 'Whoever has the fewest conversations'), ('skill', 'Whoever has the matching skill')], default='off', max_length=12)),
                    ('capacity', models.PositiveSmallIntegerField(default=10, help_text='How many open conversations a member gets at most')),
                    ('opening_hours', models.JSONField(blank=True, default=dict)),
                    ('timezone', models.CharField(blank=True, max_length=64)),
                    ('holidays', models.JSONField(blank=True, default=list, help_text='Dates on which the team is closed, such as 2026-12-25')),
                    ('last_assignee', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': [django.db.models.functions.text.Lower('name')],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(models.F('tenant'), django.db.models.functions.text.Lower('name'), name='team_name_once'), models.UniqueConstraint(condition=models.Q(('is_default', True)), fields=('tenant',), name='team_default_once'), models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='team_has_name'), models.CheckConstraint(condition=models.Q(('capacity__gte', 1)), name='team_capacity_is_positive')],
                },
            ),
            migrations.CreateModel(
                name='TeamMember',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('skills', models.JSONField(blank=True, default=list)),
                    ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='members', to='inbox.team')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('team', 'user'), name='team_member_once')],
                },
            ),
            migrations.CreateModel(
                name='Availability',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('away', models.BooleanField(default=False)),
                    ('changed_at', models.DateTimeField()),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'verbose_name_plural': 'availabilities',
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'user'), name='availability_once')],
                },
            ),
            migrations.CreateModel(
                name='Macro',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=60)),
                    ('steps', models.JSONField(default=list)),
                    ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': [django.db.models.functions.text.Lower('name')],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(models.F('tenant'), models.F('owner'), django.db.models.functions.text.Lower('name'), name='macro_name_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='macro_has_name')],
                },
            ),
            migrations.CreateModel(
                name='SavedView',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=60)),
                    ('page', models.CharField(choices=[('inbox', 'Inbox'), ('review', 'Review')], max_length=8)),
                    ('parameters', models.JSONField(blank=True, default=dict)),
                    ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': [django.db.models.functions.text.Lower('name')],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(models.F('tenant'), models.F('page'), models.F('owner'), django.db.models.functions.text.Lower('name'), name='saved_view_name_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='saved_view_has_name')],
                },
            ),
            migrations.CreateModel(
                name='InboxRule',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=60)),
                    ('position', models.PositiveSmallIntegerField(default=1)),
                    ('is_active', models.BooleanField(default=False)),
                    ('trigger', models.CharField(choices=[('opened', 'Conversation started'), ('message', "Visitor's message received"), ('handed_over', 'Handed over to a person'), ('waiting', 'Visitor has waited'), ('resolved', 'Conversation resolved'), ('reopened', 'Conversation reopened')], max_length=12)),
                    ('minutes', models.PositiveSmallIntegerField(default=0)),
                    ('match', models.CharField(choices=[('all', 'All conditions'), ('any', 'Any condition')], default='all', max_length=4)),
                    ('conditions', models.JSONField(blank=True, default=list)),
                    ('steps', models.JSONField(default=list)),
                    ('version', models.PositiveIntegerField(default=1)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['position', django.db.models.functions.text.Lower('name')],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(models.F('tenant'), django.db.models.functions.text.Lower('name'), name='inbox_rule_name_once'), models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='inbox_rule_has_name'), models.CheckConstraint(condition=models.Q(models.Q(('minutes__gte', 1), ('trigger', 'waiting')), models.Q(models.Q(('trigger', 'waiting'), _negated=True), ('minutes', 0)), _connector='OR'), name='inbox_rule_minutes_of_waiting')],
                },
            ),
            migrations.CreateModel(
                name='SlaPolicy',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=60)),
                    ('position', models.PositiveSmallIntegerField(default=1)),
                    ('first_reply', models.PositiveIntegerField(null=True)),
                    ('next_reply', models.PositiveIntegerField(null=True)),
                    ('resolution', models.PositiveIntegerField(null=True)),
                    ('in_opening_hours', models.BooleanField(default=True)),
                    ('teams', models.JSONField(blank=True, default=list)),
                    ('deployments', models.JSONField(blank=True, default=list)),
                    ('changed_at', models.DateTimeField()),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'verbose_name': 'SLA policy',
                    'verbose_name_plural': 'SLA policies',
                    'ordering': ['position', django.db.models.functions.text.Lower('name')],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(models.F('tenant'), django.db.models.functions.text.Lower('name'), name='sla_policy_name_once'), models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='sla_policy_has_name'), models.CheckConstraint(condition=models.Q(('first_reply__gte', 1), ('next_reply__gte', 1), ('resolution__gte', 1), _connector='OR'), name='sla_policy_has_target')],
                },
            ),
        ),
        RowSecurity("inbox_team"),
        RowSecurity("inbox_teammember"),
        RowSecurity("inbox_availability"),
        RowSecurity("inbox_macro"),
        RowSecurity("inbox_savedview"),
        RowSecurity("inbox_inboxrule"),
        RowSecurity("inbox_slapolicy"),
    ]
