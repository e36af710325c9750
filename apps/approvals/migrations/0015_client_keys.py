import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models

from apps.approvals.sql import append_only
from kernel.tenancy.migrations import RowSecurity


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0014_cards_by_age'),
        ('tenants', '0008_api_key_rotation'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ClientKey',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('key_id', models.CharField(help_text="The first characters of the public key's SHA-256", max_length=16)),
                ('public_key', models.CharField(help_text='Ed25519, hexadecimal', max_length=64)),
                ('scopes', models.JSONField()),
                ('max_risk', models.CharField(choices=[('low', 'Low'), ('medium', 'Medium'), ('high', 'High'), ('irreversible', 'Irreversible')], max_length=16)),
                ('created_at', models.DateTimeField()),
                ('certificate', models.CharField(help_text='Signature of the installation key, base64', max_length=120)),
                ('revoked_at', models.DateTimeField(null=True)),
                ('api_key', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.apikey')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['created_at'],
                'abstract': False,
                'base_manager_name': 'objects',
                'constraints': [models.UniqueConstraint(fields=('tenant', 'key_id'), name='client_key_once')],
            },
        ),
        RowSecurity("approvals_clientkey"),
        migrations.RunSQL(append_only.CLIENT_KEYS, append_only.CLIENT_KEYS_REVERSE),
    ]
