import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models

from apps.releases import immutable
from kernel.tenancy.migrations import RowSecurity, Tables


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='Release',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('number', models.PositiveIntegerField()),
                    ('status', models.CharField(choices=[('live', 'Live'), ('retired', 'Replaced'), ('withdrawn', 'Rolled back')], default='live', max_length=10)),
                    ('share', models.PositiveSmallIntegerField(help_text='Percent of new conversations')),
                    ('snapshot', models.JSONField()),
                    ('sha256', models.CharField(max_length=64)),
                    ('note', models.CharField(blank=True, max_length=200)),
                    ('restores', models.PositiveIntegerField(null=True)),
                    ('simulation', models.CharField(choices=[('passed', 'Passed'), ('failed', 'Failed'), ('missing', 'Not run')], default='missing', max_length=8)),
                    ('override_reason', models.CharField(blank=True, max_length=300)),
                    ('created_by', models.CharField(max_length=80)),
                    ('published_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.deployment')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['deployment', '-number'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('deployment', 'number'), name='release_number_once'), models.CheckConstraint(condition=models.Q(('number__gte', 1)), name='release_number_counts'), models.CheckConstraint(condition=models.Q(models.Q(('share__gte', 1), ('share__lte', 100), ('status', 'live')), models.Q(models.Q(('status', 'live'), _negated=True), ('share', 0)), _connector='OR'), name='release_share_when_live')],
                },
            ),
            migrations.CreateModel(
                name='ReleasePolicy',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('simulations', models.CharField(choices=[('off', 'Not needed'), ('warn', 'Warn when none passed'), ('require', 'Required')], default='off', max_length=8)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'verbose_name_plural': 'release policies',
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant',), name='release_policy_once')],
                },
            ),
        ),
        RowSecurity("releases_release"),
        RowSecurity("releases_releasepolicy"),
        migrations.RunSQL(immutable.REFUSE, immutable.REFUSE_REVERSE),
    ]
