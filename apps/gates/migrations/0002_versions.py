import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity


class Migration(migrations.Migration):
    """A place for versions, beside what a gate says until 0003 has moved it there."""

    dependencies = [
        ('gates', '0001_initial'),
        ('tenants', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='GateVersion',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField()),
                ('order', models.PositiveSmallIntegerField(default=100)),
                ('content', models.JSONField()),
                ('restores', models.PositiveIntegerField(null=True)),
                ('written_by', models.CharField(max_length=80)),
                ('note', models.CharField(blank=True, max_length=200)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('gate', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='versions', to='gates.gate')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'ordering': ['gate', '-number'],
                'abstract': False,
                'base_manager_name': 'objects',
                'constraints': [models.UniqueConstraint(fields=('gate', 'number'), name='gate_version_once'), models.CheckConstraint(condition=models.Q(('number__gte', 1)), name='gate_version_counts')],
            },
        ),
        RowSecurity("gates_gateversion"),
        migrations.AddField(
            model_name='gate',
            name='active',
            field=models.PositiveIntegerField(blank=True, null=True, verbose_name='version in force'),
        ),
        migrations.AddField(
            model_name='gate',
            name='newest',
            field=models.PositiveIntegerField(default=0, verbose_name='newest version'),
        ),
        migrations.AddField(
            model_name='gate',
            name='status',
            field=models.CharField(choices=[('draft', 'Draft'), ('active', 'In force'), ('retired', 'Retired')], default='draft', max_length=8),
        ),
    ]
