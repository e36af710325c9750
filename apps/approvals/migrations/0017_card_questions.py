import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0016_decision_links'),
        ('tenants', '0012_apps_register_themselves'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='CardQuestion',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('session_id', models.UUIDField()),
                ('seq', models.PositiveBigIntegerField()),
                ('asked_at', models.DateTimeField()),
                ('waits_until', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('answer_seq', models.PositiveBigIntegerField(null=True)),
                ('asker', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('card', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='questions', to='approvals.card')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'ordering': ['asked_at'],
                'abstract': False,
                'base_manager_name': 'objects',
                'indexes': [models.Index(condition=models.Q(('ended_at', None)), fields=['tenant', 'session_id'], name='card_question_unanswered')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('card',), name='card_question_open_once'), models.CheckConstraint(condition=models.Q(('waits_until__gt', models.F('asked_at'))), name='card_question_waits'), models.CheckConstraint(condition=models.Q(('answer_seq', None), models.Q(('answer_seq__gt', models.F('seq')), ('ended_at__isnull', False)), _connector='OR'), name='card_question_answered_later')],
            },
        ),
        RowSecurity("approvals_cardquestion"),
    ]
