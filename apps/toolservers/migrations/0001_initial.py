import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models

from kernel.tenancy.migrations import AppendOnly, RowSecurity, Tables


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("toolservers", "0001_squashed"),
        ("toolservers", "0002_looks_are_due_on_the_bus"),
        ("toolservers", "0002_next_look"),
        ("toolservers", "0003_plain_labels"),
        ("toolservers", "0003_program_of_a_skill"),
        ("toolservers", "0004_plural_names"),
    ]

    dependencies = [
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='ToolServer',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=24)),
                    ('transport', models.CharField(choices=[('http', 'Over the network'), ('stdio', 'A program in the sandbox')], max_length=8)),
                    ('url', models.CharField(blank=True, max_length=500)),
                    ('program', models.CharField(blank=True, max_length=100)),
                    ('argv', models.JSONField(blank=True, default=list)),
                    ('egress', models.JSONField(blank=True, default=list)),
                    ('secret', models.BinaryField(blank=True, default=b'')),
                    ('enabled', models.BooleanField(default=True)),
                    ('removed', models.BooleanField(default=False)),
                    ('listed_at', models.DateTimeField(blank=True, null=True)),
                    ('failure', models.CharField(blank=True, max_length=60)),
                    ('failed_at', models.DateTimeField(blank=True, null=True)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['name'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(condition=models.Q(('removed', False)), fields=('tenant', 'name'), name='tool_server_once'), models.CheckConstraint(condition=models.Q(('removed', False), models.Q(('enabled', False), ('secret', b'')), _connector='OR'), name='tool_server_gone'), models.CheckConstraint(condition=models.Q(models.Q(('transport', 'http'), models.Q(('url', ''), _negated=True), ('program', '')), models.Q(('transport', 'stdio'), ('url', ''), models.Q(('program', ''), _negated=True)), _connector='OR'), name='tool_server_has_its_address')],
                },
            ),
            migrations.CreateModel(
                name='OutsideTool',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('alias', models.CharField(max_length=60)),
                    ('name', models.CharField(max_length=128)),
                    ('said', models.JSONField(default=dict)),
                    ('digest', models.CharField(blank=True, max_length=64)),
                    ('seen', models.JSONField(blank=True, default=dict)),
                    ('seen_digest', models.CharField(blank=True, max_length=64)),
                    ('problem', models.CharField(blank=True, max_length=120)),
                    ('state', models.CharField(choices=[('new', 'Not reviewed'), ('accepted', 'In use'), ('suspended', 'Suspended until reviewed')], default='new', max_length=10)),
                    ('acting', models.BooleanField(default=True)),
                    ('risk', models.CharField(choices=[('low', 'Low'), ('medium', 'Medium'), ('high', 'High'), ('irreversible', 'Irreversible')], default='high', max_length=16)),
                    ('level', models.CharField(blank=True, max_length=60)),
                    ('price', models.DecimalField(decimal_places=9, default=0, max_digits=18)),
                    ('timeout', models.PositiveSmallIntegerField(default=30)),
                    ('proof', models.JSONField(blank=True, default=dict)),
                    ('accepted_by', models.UUIDField(blank=True, null=True)),
                    ('accepted_at', models.DateTimeField(blank=True, null=True)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('server', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tools', to='toolservers.toolserver')),
                ],
                options={
                    'ordering': ['alias'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'alias'), name='outside_tool_alias_once'), models.UniqueConstraint(fields=('server', 'name'), name='outside_tool_name_once'), models.CheckConstraint(condition=models.Q(('price__gte', 0)), name='outside_tool_price'), models.CheckConstraint(condition=models.Q(models.Q(('state', 'accepted'), _negated=True), models.Q(('digest', models.F('seen_digest')), models.Q(('digest', ''), _negated=True), ('problem', ''), ('accepted_at__isnull', False)), _connector='OR'), name='outside_tool_as_accepted')],
                },
            ),
            migrations.CreateModel(
                name='ToolSet',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('digest', models.CharField(max_length=64)),
                    ('tools', models.JSONField()),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('server', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='sets', to='toolservers.toolserver')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['-created_at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('server', 'digest'), name='tool_set_once')],
                },
            ),
            migrations.CreateModel(
                name='WebSearch',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('provider', models.CharField(choices=[('brave', 'Brave Search'), ('tavily', 'Tavily'), ('searxng', 'SearXNG (your own)')], max_length=12)),
                    ('base_url', models.CharField(max_length=500)),
                    ('key', models.BinaryField(blank=True, default=b'')),
                    ('domains', models.JSONField(blank=True, default=list)),
                    ('most_results', models.PositiveSmallIntegerField(default=5)),
                    ('price', models.DecimalField(decimal_places=9, default=0, max_digits=18)),
                    ('level', models.CharField(blank=True, default='public', max_length=60)),
                    ('failure', models.CharField(blank=True, max_length=60)),
                    ('changed_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant',), name='web_search_once'), models.CheckConstraint(condition=models.Q(('price__gte', 0)), name='web_search_price'), models.CheckConstraint(condition=models.Q(('most_results__gte', 1), ('most_results__lte', 10)), name='web_search_results')],
                    'verbose_name': 'web search',
                    'verbose_name_plural': 'web searches',
                },
            ),
        ),
        RowSecurity("toolservers_toolserver"),
        RowSecurity("toolservers_outsidetool"),
        RowSecurity("toolservers_toolset"),
        RowSecurity("toolservers_websearch"),
        AppendOnly("toolservers", "a set of tools cannot be rewritten", "toolservers_toolset"),
    ]
