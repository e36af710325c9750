"""Add apps of third parties, what members granted them, and their tokens."""

import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0009_idempotent_requests'),
    ]

    operations = [
        migrations.CreateModel(
            name='OAuthApp',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=80)),
                ('redirect_uris', models.JSONField(blank=True, default=list)),
                ('scopes', models.JSONField(default=list)),
                ('hashed_secret', models.CharField(blank=True, editable=False, max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'verbose_name': 'app',
                'abstract': False,
                'base_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='OAuthGrant',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('scopes', models.JSONField(default=list)),
                ('audience', models.CharField(blank=True, max_length=120)),
                ('redirect_uri', models.CharField(blank=True, editable=False, max_length=500)),
                ('code_hashed', models.CharField(editable=False, max_length=64, null=True, unique=True)),
                ('code_challenge', models.CharField(blank=True, editable=False, max_length=64)),
                ('code_expires_at', models.DateTimeField(editable=False, null=True)),
                ('code_used_at', models.DateTimeField(editable=False, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('last_used_at', models.DateTimeField(editable=False, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('app', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.oauthapp')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'access of an app',
                'verbose_name_plural': 'access of apps',
                'abstract': False,
                'base_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='OAuthToken',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('access', 'Access token'), ('refresh', 'Refresh token')], max_length=8)),
                ('hashed', models.CharField(max_length=64, unique=True)),
                ('scopes', models.JSONField(default=list)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(null=True)),
                ('grant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to='tenants.oauthgrant')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'verbose_name': 'token of an app',
                'verbose_name_plural': 'tokens of apps',
                'abstract': False,
                'base_manager_name': 'objects',
            },
        ),
        migrations.AddConstraint(
            model_name='oauthgrant',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('code_challenge', ''), ('code_hashed__isnull', True), ('user__isnull', True)), models.Q(('code_expires_at__isnull', False), ('code_hashed__isnull', False), ('user__isnull', False), models.Q(('code_challenge', ''), _negated=True)), _connector='OR'), name='oauth_grant_of_member_has_code'),
        ),
        migrations.AddConstraint(
            model_name='oauthgrant',
            constraint=models.UniqueConstraint(condition=models.Q(('revoked_at__isnull', True), ('user__isnull', True)), fields=('app', 'audience'), name='oauth_grant_of_app_once'),
        ),
        # The app of a request, and its token, are looked up before their tenant is known.
        RowSecurity("tenants_oauthapp", lookup="id"),
        RowSecurity("tenants_oauthgrant"),
        RowSecurity("tenants_oauthtoken", lookup="hashed"),
    ]
