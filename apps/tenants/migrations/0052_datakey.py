import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0051_visits'),
    ]

    operations = [
        migrations.CreateModel(
            name='DataKey',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField()),
                ('wrapped', models.BinaryField()),
                ('master', models.CharField(max_length=16)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('retired_at', models.DateTimeField(blank=True, null=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'ordering': ['-number'],
                'abstract': False,
                'base_manager_name': 'objects',
                'constraints': [models.UniqueConstraint(fields=('tenant', 'number'), name='data_key_number_once'), models.UniqueConstraint(condition=models.Q(('retired_at', None)), fields=('tenant',), name='data_key_active_once')],
            },
        ),
        RowSecurity('tenants_datakey'),
    ]
