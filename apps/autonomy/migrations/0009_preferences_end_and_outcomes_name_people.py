import apps.approvals.cards.kinds
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


# What was kept before has no end yet: it counts for the usual time from now. A key is `behavior:<word>:<family>`.
EXISTING = """
    UPDATE autonomy_preference SET
        family = CASE WHEN key = 'behavior:shorter' THEN 'drafts' ELSE left(split_part(key, ':', 3), 80) END,
        expires_at = CASE WHEN state = 'kept' THEN now() + interval '180 days' END;
    SET CONSTRAINTS ALL IMMEDIATE;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('autonomy', '0008_keys_of_findings'),
        ('tenants', '0006_reworded_labels'),
        ('work', '0008_plain_labels'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='initiativesettings',
            name='preference_days',
            field=models.PositiveSmallIntegerField(db_default=180, default=180, help_text='How long a preference counts after it was added'),
        ),
        migrations.AddField(
            model_name='outcome',
            name='card_kind',
            field=models.CharField(blank=True, choices=apps.approvals.cards.kinds.kind_labels, db_default='', max_length=24),
        ),
        migrations.AddField(
            model_name='outcome',
            name='decided_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='outcome',
            name='goal',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='work.workitem'),
        ),
        migrations.AddField(
            model_name='preference',
            name='expires_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='preference',
            name='family',
            field=models.CharField(blank=True, db_default='', max_length=80),
        ),
        migrations.AddField(
            model_name='preference',
            name='people',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.RunSQL(EXISTING, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name='initiativesettings',
            constraint=models.CheckConstraint(condition=models.Q(('preference_days__range', (1, 730))), name='initiative_preferences_end'),
        ),
        migrations.AddConstraint(
            model_name='preference',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state', 'kept'), _negated=True), ('expires_at__isnull', False), _connector='OR'), name='preference_kept_expires'),
        ),
    ]
