"""Add the logo and avatar of a chatbot."""

import django.db.models.deletion
import uuid
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity


class Migration(migrations.Migration):
    lock_reason = "A column with a constant default of the database is added in a moment."

    dependencies = [
        ('tenants', '0013_closed'),
    ]

    operations = [
        migrations.AddField(
            model_name='deployment',
            name='pictures',
            field=models.JSONField(blank=True, db_default={}, default=dict, editable=False),
        ),
        migrations.CreateModel(
            name='DeploymentPicture',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('logo', 'Logo'), ('avatar', 'Avatar')], max_length=8)),
                ('media_type', models.CharField(max_length=16)),
                ('sha256', models.CharField(max_length=64)),
                ('content', models.BinaryField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.deployment')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'constraints': [models.UniqueConstraint(fields=('deployment', 'kind'), name='deployment_picture_once'), models.CheckConstraint(condition=models.Q(('media_type__in', ['image/png', 'image/jpeg', 'image/webp'])), name='deployment_picture_is_a_raster')],
            },
        ),
        RowSecurity("tenants_deploymentpicture"),
    ]
