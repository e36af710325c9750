import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity


class Migration(migrations.Migration):

    dependencies = [
        ('autonomy', '0011_egress'),
        ('tenants', '0006_reworded_labels'),
    ]

    operations = [
        migrations.CreateModel(
            name='Artifact',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('skills', models.JSONField(default=list)),
                ('taint', models.CharField(choices=[('owner', 'owner'), ('auth', 'auth'), ('external', 'external')], default='external', max_length=8)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('quarantined_at', models.DateTimeField(blank=True, null=True)),
                ('title', models.CharField(max_length=300)),
                ('kind', models.CharField(choices=[('markdown', 'Document'), ('table', 'Table'), ('text', 'Text')], max_length=10)),
                ('content', models.TextField(blank=True)),
                ('table', models.JSONField(blank=True, null=True)),
                ('size', models.PositiveIntegerField(help_text='Bytes')),
                ('digest', models.CharField(max_length=64)),
                ('root', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='autonomy.autonomoussession')),
                ('session', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='autonomy.autonomoussession')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='autonomy.task')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'ordering': ['created_at'],
                'abstract': False,
                'base_manager_name': 'objects',
                'constraints': [models.UniqueConstraint(fields=('root', 'digest'), name='autonomy_artifact_once'), models.CheckConstraint(condition=models.Q(('size__lte', 262144)), name='autonomy_artifact_size'), models.CheckConstraint(condition=models.Q(models.Q(('content', ''), ('kind', 'table'), ('table__isnull', False)), models.Q(models.Q(('kind', 'table'), _negated=True), ('table__isnull', True)), _connector='OR'), name='autonomy_artifact_is_one_thing')],
            },
        ),
        RowSecurity('autonomy_artifact'),
    ]
