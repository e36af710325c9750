import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models

import apps.contacts.enums
from kernel.tenancy.migrations import RowSecurity, Tables


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("contacts", "0001_contacts"),
        ("contacts", "0002_imported_conversations"),
        ("contacts", "0003_proved_identities"),
        ("contacts", "0004_erasures"),
        ("contacts", "0005_channels_without_migrations"),
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='Contact',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(blank=True, max_length=120)),
                    ('attributes', models.JSONField(default=dict)),
                    ('source', models.CharField(choices=[('chat', 'Conversation'), ('team', 'Your team'), ('api', 'API'), ('import', 'Import')], max_length=8)),
                    ('version', models.PositiveIntegerField(default=1)),
                    ('created_at', models.DateTimeField()),
                    ('last_seen_at', models.DateTimeField()),
                    ('merged_into', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='contacts.contact')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(condition=models.Q(('merged_into', None)), fields=['tenant', '-last_seen_at'], name='contact_by_activity')],
                },
            ),
            migrations.CreateModel(
                name='ContactIdentity',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('kind', models.CharField(choices=apps.contacts.enums.identity_kinds, max_length=10)),
                    ('value', models.CharField(max_length=254)),
                    ('proved_by', models.CharField(blank=True, choices=[('', 'Not verified'), ('gate', 'Verified by a gate'), ('signed', 'Signed by your website'), ('link', 'Confirmed by a link'), ('provider', 'Verified by the channel')], default='', max_length=8)),
                    ('proved_at', models.DateTimeField(null=True)),
                    ('created_at', models.DateTimeField()),
                    ('contact', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='identities', to='contacts.contact')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'verbose_name_plural': 'contact identities',
                    'ordering': ['kind', 'created_at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(fields=['tenant', 'kind', 'value'], name='contact_identity_by_value'), models.Index(condition=models.Q(('proved_at__isnull', False)), fields=['contact'], name='contact_identity_proved')],
                    'constraints': [models.UniqueConstraint(fields=('contact', 'kind', 'value'), name='contact_identity_once'), models.UniqueConstraint(condition=models.Q(('kind__in', ('customer', 'imported')), ('proved_at__isnull', False), _connector='OR'), fields=('tenant', 'kind', 'value'), name='contact_identity_is_ones'), models.CheckConstraint(condition=models.Q(models.Q(('proved_at', None), ('proved_by', '')), models.Q(models.Q(('proved_by', ''), _negated=True), ('proved_at__isnull', False)), _connector='OR'), name='contact_identity_proof_has_time')],
                },
            ),
            migrations.CreateModel(
                name='ContactMerge',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('moved', models.JSONField(default=dict)),
                    ('by', models.CharField(max_length=80)),
                    ('created_at', models.DateTimeField()),
                    ('undone_at', models.DateTimeField(null=True)),
                    ('kept', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='merges', to='contacts.contact')),
                    ('merged', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='contacts.contact')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(condition=models.Q(('undone_at', None)), fields=('merged',), name='contact_merged_once'), models.CheckConstraint(condition=models.Q(('kept', models.F('merged')), _negated=True), name='contact_merge_of_two')],
                },
            ),
            migrations.CreateModel(
                name='ContactNote',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('text', models.TextField()),
                    ('created_at', models.DateTimeField()),
                    ('author', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('contact', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notes', to='contacts.contact')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.CheckConstraint(condition=models.Q(('text', ''), _negated=True), name='contact_note_says_something')],
                },
            ),
            migrations.CreateModel(
                name='ImportedConversation',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('system', models.CharField(max_length=10)),
                    ('external_id', models.CharField(max_length=100)),
                    ('subject', models.CharField(blank=True, max_length=254)),
                    ('state', models.CharField(blank=True, max_length=254)),
                    ('messages', models.JSONField(default=list)),
                    ('text', models.TextField(blank=True)),
                    ('started_at', models.DateTimeField(null=True)),
                    ('last_at', models.DateTimeField(null=True)),
                    ('imported_at', models.DateTimeField()),
                    ('contact', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='contacts.contact')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [django.contrib.postgres.indexes.GinIndex(django.contrib.postgres.search.SearchVector('text', config='simple'), name='imported_conversation_words'), models.Index(fields=['contact', '-last_at'], name='imported_by_contact')],
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'system', 'external_id'), name='imported_conversation_once')],
                },
            ),
            migrations.CreateModel(
                name='Erasure',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('reference', models.CharField(max_length=80)),
                    ('state', models.CharField(choices=[('running', 'Running'), ('stopped', 'Stopped'), ('done', 'Done')], default='running', max_length=8)),
                    ('person', models.JSONField(default=dict)),
                    ('counts', models.JSONField(default=dict)),
                    ('receipt', models.JSONField(null=True)),
                    ('entry_id', models.UUIDField(null=True)),
                    ('requested_by', models.CharField(max_length=80)),
                    ('created_at', models.DateTimeField()),
                    ('ended_at', models.DateTimeField(null=True)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['-created_at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('tenant', 'reference'), name='erasure_once_a_person'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('entry_id__isnull', True), ('receipt__isnull', True)), models.Q(('ended_at__isnull', False), ('entry_id__isnull', False), ('person', {}), ('receipt__isnull', False)), _connector='OR'), name='erasure_ends_with_a_receipt')],
                },
            ),
        ),
        RowSecurity("contacts_contact"),
        RowSecurity("contacts_contactidentity"),
        RowSecurity("contacts_contactmerge"),
        RowSecurity("contacts_contactnote"),
        RowSecurity("contacts_importedconversation"),
        RowSecurity("contacts_erasure"),
    ]
