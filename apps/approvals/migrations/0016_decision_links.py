import datetime
import django.db.models.deletion
import django.db.models.expressions
import uuid
from django.conf import settings
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0015_client_keys'),
        ('tenants', '0008_api_key_rotation'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='DecisionLink',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('face_hash', models.CharField(max_length=64)),
                ('hashed', models.CharField(max_length=64, unique=True)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('spent_at', models.DateTimeField(null=True)),
                ('card', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.card')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['created_at'],
                'abstract': False,
                'base_manager_name': 'objects',
                'constraints': [models.CheckConstraint(condition=models.Q(('expires_at__gt', models.F('created_at')), ('expires_at__lte', django.db.models.expressions.CombinedExpression(models.F('created_at'), '+', models.Value(datetime.timedelta(seconds=3600))))), name='decision_link_lasts_an_hour_at_most')],
            },
        ),
        RowSecurity("approvals_decisionlink", lookup="hashed"),
        migrations.RemoveConstraint(
            model_name='passkeychallenge',
            name='challenge_fits_its_purpose',
        ),
        migrations.AlterField(
            model_name='passkeychallenge',
            name='purpose',
            field=models.CharField(choices=[('register', 'Register'), ('step_up', 'Step Up'), ('link_open', 'Link Open'), ('hold_allow', 'Hold Allow'), ('hold_code', 'Hold Code'), ('hold_token', 'Hold Token')], max_length=16),
        ),
        migrations.AddConstraint(
            model_name='passkeychallenge',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('card', None), ('purpose', 'register'), ('subject', '')), models.Q(('card__isnull', False), ('purpose__in', ('step_up', 'link_open')), ('subject', '')), models.Q(('card', None), ('purpose__in', ('hold_allow', 'hold_code', 'hold_token')), models.Q(('subject', ''), _negated=True), models.Q(('payload_hash', ''), _negated=True)), _connector='OR'), name='challenge_fits_its_purpose'),
        ),
    ]
