import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models

from kernel.tenancy.migrations import AppendOnly, RowSecurity, Tables


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='PersonaState',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('baseline_axes', models.JSONField(default=dict)),
                    ('active_preset', models.CharField(choices=[('off', 'Off: only the persona below'), ('default', 'Balanced'), ('work', 'Businesslike'), ('review', 'Thorough'), ('chill', 'Relaxed'), ('custom', 'Custom')], default='off', max_length=12)),
                    ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('deployment', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.deployment')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                },
            ),
            migrations.CreateModel(
                name='PersonaEvent',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('session_id', models.UUIDField(null=True)),
                    ('event_type', models.CharField(choices=[('compliment', 'Compliment'), ('task_completed', 'Task completed'), ('blocked', 'Blocked'), ('long_session', 'Long conversation'), ('too_harsh', 'Too harsh'), ('too_soft', 'Too soft'), ('too_wordy', 'Too long'), ('too_brief', 'Too short'), ('tuned', 'Axes changed'), ('preset_chosen', 'Preset chosen')], max_length=16)),
                    ('trusted', models.BooleanField()),
                    ('delta_axes', models.JSONField(default=dict)),
                    ('delta_mood', models.JSONField(default=dict)),
                    ('source', models.CharField(choices=[('runtime', 'Conversation'), ('owner_feedback', 'Owner')], max_length=16)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.deployment')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(fields=['tenant', 'deployment', '-created_at'], name='persona_event_by_age')],
                },
            ),
        ),
        RowSecurity("persona_personastate"),
        RowSecurity("persona_personaevent"),
        AppendOnly("persona", "the log of a personality is append-only", "persona_personaevent"),
    ]
