import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0050_key_scopes'),
    ]

    operations = [
        migrations.CreateModel(
            name='Visit',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('since', models.DateTimeField()),
                ('last_at', models.DateTimeField()),
                ('before', models.DateTimeField(null=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'constraints': [models.UniqueConstraint(fields=('tenant', 'user'), name='visit_once')],
            },
        ),
        RowSecurity('tenants_visit'),
    ]
