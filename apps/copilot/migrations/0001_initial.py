import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity, Tables


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("silas_sessions", "0001_initial"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='AssistanceSettings',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('switched_off', models.JSONField(blank=True, default=list)),
                    ('deployment', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.deployment')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'verbose_name': 'assistance for staff',
                    'verbose_name_plural': 'assistance for staff',
                    'abstract': False,
                    'base_manager_name': 'objects',
                },
            ),
            migrations.CreateModel(
                name='Assistance',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('actor', models.CharField(max_length=80)),
                    ('kind', models.CharField(choices=[('suggest', 'Suggest a reply'), ('shorter', 'Make it shorter'), ('friendlier', 'Make it friendlier'), ('formal', 'Make it more formal'), ('spelling', 'Fix spelling and grammar'), ('translate_reply', "Translate to the customer's language"), ('translate_message', "Translate the customer's last message"), ('summary', 'Summarize the conversation'), ('bot_preview', 'Show what the bot would do'), ('fill_form', 'Fill in a form')], max_length=20)),
                    ('status', models.CharField(choices=[('running', 'Running'), ('done', 'Done'), ('cancelled', 'Cancelled'), ('refused', 'Refused'), ('failed', 'Failed')], default='running', max_length=10)),
                    ('reason', models.CharField(blank=True, max_length=60)),
                    ('model_name', models.CharField(blank=True, max_length=120)),
                    ('cost_usd', models.DecimalField(decimal_places=9, default=0, max_digits=18)),
                    ('context', models.JSONField(default=dict)),
                    ('run_id', models.UUIDField(null=True)),
                    ('created_at', models.DateTimeField()),
                    ('finished_at', models.DateTimeField(null=True)),
                    ('member', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('session', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='silas_sessions.chatsession')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'verbose_name': 'request for assistance',
                    'verbose_name_plural': 'requests for assistance',
                    'ordering': ['-created_at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(fields=['session', '-created_at'], name='assistance_by_session')],
                },
            ),
        ),
        RowSecurity("copilot_assistancesettings"),
        RowSecurity("copilot_assistance"),
    ]
