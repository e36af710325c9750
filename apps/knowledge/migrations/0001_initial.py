import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import pgvector.django.halfvec
import pgvector.django.indexes
import pgvector.django.vector
import uuid
from django.db import migrations, models

from kernel.tenancy.migrations import RowSecurity, Tables

GOES_WITH_CHUNK = """
ALTER TABLE knowledge_chunkvector ADD CONSTRAINT knowledge_vector_goes_with_chunk
    FOREIGN KEY (chunk_id) REFERENCES memory_chunk (id) ON DELETE CASCADE;
"""
GOES_WITH_CHUNK_REVERSE = "ALTER TABLE knowledge_chunkvector DROP CONSTRAINT knowledge_vector_goes_with_chunk;"


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("knowledge", "0001_gaps"),
        ("knowledge", "0002_sources"),
        ("knowledge", "0003_provider_vectors"),
        ("knowledge", "0004_source_kinds"),
    ]

    dependencies = [
        ("memory", "0001_initial"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='GapTopic',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('question', models.CharField(max_length=600)),
                    ('centroid', pgvector.django.vector.VectorField(dimensions=256)),
                    ('visitors', models.PositiveIntegerField(default=0)),
                    ('status', models.CharField(choices=[('open', 'Open'), ('drafted', 'Waiting for approval'), ('answered', 'Answered'), ('dismissed', 'Dismissed')], default='open', max_length=10)),
                    ('title', models.CharField(blank=True, max_length=200)),
                    ('answer', models.TextField(blank=True)),
                    ('card_id', models.UUIDField(null=True)),
                    ('first_at', models.DateTimeField()),
                    ('last_at', models.DateTimeField()),
                    ('answered_at', models.DateTimeField(null=True)),
                    ('collection', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='memory.collection')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['-visitors', '-last_at', 'pk'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(fields=['tenant', 'status', '-visitors'], name='knowledge_gap_by_status')],
                    'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('status', 'drafted'), _negated=True), ('card_id__isnull', False), _connector='OR'), name='knowledge_gap_draft_has_card')],
                },
            ),
            migrations.CreateModel(
                name='GapQuestion',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('session_id', models.UUIDField()),
                    ('asker', models.CharField(max_length=64)),
                    ('text', models.CharField(max_length=600)),
                    ('digest', models.CharField(max_length=64)),
                    ('reason', models.CharField(choices=[('unanswered', 'Not answered'), ('badly_rated', 'Badly rated')], max_length=12)),
                    ('asked_at', models.DateTimeField()),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('topic', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='questions', to='knowledge.gaptopic')),
                ],
                options={
                    'ordering': ['-asked_at', 'pk'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(condition=models.Q(('topic', None)), fields=['tenant', 'asked_at'], name='knowledge_gap_unclustered')],
                    'constraints': [models.UniqueConstraint(fields=('session_id', 'digest'), name='knowledge_gap_question_once')],
                },
            ),
            migrations.CreateModel(
                name='KnowledgeSource',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('location', models.CharField(blank=True, max_length=500)),
                    ('every_hours', models.PositiveIntegerField(default=24)),
                    ('enabled', models.BooleanField(default=True)),
                    ('next_at', models.DateTimeField(null=True)),
                    ('intake_id', models.UUIDField(null=True)),
                    ('dry_run', models.BooleanField(default=False)),
                    ('report', models.JSONField(default=dict)),
                    ('by', models.CharField(max_length=60)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memory.collection')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('kind', models.CharField(choices=[('website', 'Website'), ('folder', 'Folder'), ('s3', 'S3 bucket'), ('notion', 'Notion'), ('confluence', 'Confluence'), ('zendesk', 'Zendesk help center'), ('google_drive', 'Google Drive')], default='website', max_length=12)),
                    ('connection_id', models.UUIDField(null=True)),
                ],
                options={
                    'ordering': ['kind', 'location', 'pk'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.CheckConstraint(condition=models.Q(('every_hours__range', (1, 720))), name='knowledge_source_interval'), models.UniqueConstraint(fields=('collection', 'kind', 'connection_id', 'location'), name='knowledge_source_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(models.Q(('connection_id', None), ('kind__in', ('website', 'folder'))), models.Q(models.Q(('kind__in', ('website', 'folder')), _negated=True), ('connection_id__isnull', False)), _connector='OR'), name='knowledge_source_has_account')],
                },
            ),
            migrations.CreateModel(
                name='ChunkVector',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('version', models.CharField(max_length=130)),
                    ('dimensions', models.PositiveSmallIntegerField()),
                    ('embedding', pgvector.django.halfvec.HalfVectorField()),
                    ('chunk', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='vectors', to='memory.chunk')),
                    ('collection_id', models.UUIDField()),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(fields=['tenant', 'version', 'collection_id'], name='knowledge_vector_by_version'), pgvector.django.indexes.HnswIndex(django.contrib.postgres.indexes.OpClass(django.db.models.functions.comparison.Cast('embedding', pgvector.django.halfvec.HalfVectorField(dimensions=384)), name='halfvec_cosine_ops'), condition=models.Q(('dimensions', 384)), name='knowledge_vector_near_384'), pgvector.django.indexes.HnswIndex(django.contrib.postgres.indexes.OpClass(django.db.models.functions.comparison.Cast('embedding', pgvector.django.halfvec.HalfVectorField(dimensions=512)), name='halfvec_cosine_ops'), condition=models.Q(('dimensions', 512)), name='knowledge_vector_near_512'), pgvector.django.indexes.HnswIndex(django.contrib.postgres.indexes.OpClass(django.db.models.functions.comparison.Cast('embedding', pgvector.django.halfvec.HalfVectorField(dimensions=768)), name='halfvec_cosine_ops'), condition=models.Q(('dimensions', 768)), name='knowledge_vector_near_768'), pgvector.django.indexes.HnswIndex(django.contrib.postgres.indexes.OpClass(django.db.models.functions.comparison.Cast('embedding', pgvector.django.halfvec.HalfVectorField(dimensions=1024)), name='halfvec_cosine_ops'), condition=models.Q(('dimensions', 1024)), name='knowledge_vector_near_1024'), pgvector.django.indexes.HnswIndex(django.contrib.postgres.indexes.OpClass(django.db.models.functions.comparison.Cast('embedding', pgvector.django.halfvec.HalfVectorField(dimensions=1536)), name='halfvec_cosine_ops'), condition=models.Q(('dimensions', 1536)), name='knowledge_vector_near_1536'), pgvector.django.indexes.HnswIndex(django.contrib.postgres.indexes.OpClass(django.db.models.functions.comparison.Cast('embedding', pgvector.django.halfvec.HalfVectorField(dimensions=3072)), name='halfvec_cosine_ops'), condition=models.Q(('dimensions', 3072)), name='knowledge_vector_near_3072')],
                    'constraints': [models.UniqueConstraint(fields=('chunk', 'version'), name='knowledge_vector_once')],
                },
            ),
            migrations.CreateModel(
                name='SearchSettings',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('embedding_model', models.CharField(blank=True, max_length=120)),
                    ('dimensions', models.PositiveSmallIntegerField(default=0)),
                    ('former_model', models.CharField(blank=True, max_length=120)),
                    ('former_dimensions', models.PositiveSmallIntegerField(default=0)),
                    ('embedded', models.PositiveIntegerField(default=0)),
                    ('total', models.PositiveIntegerField(default=0)),
                    ('problem', models.CharField(blank=True, max_length=60)),
                    ('problem_at', models.DateTimeField(null=True)),
                    ('reranker', models.CharField(blank=True, max_length=120)),
                    ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.deployment')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'verbose_name': 'search settings',
                    'verbose_name_plural': 'search settings',
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant',), name='knowledge_search_settings_once'), models.CheckConstraint(condition=models.Q(models.Q(('dimensions', 0), ('embedding_model', '')), models.Q(models.Q(('embedding_model', ''), _negated=True), ('dimensions__in', (384, 512, 768, 1024, 1536, 3072))), _connector='OR'), name='knowledge_search_dimensions')],
                },
            ),
        ),
        RowSecurity("knowledge_gaptopic"),
        RowSecurity("knowledge_gapquestion"),
        RowSecurity("knowledge_knowledgesource"),
        RowSecurity("knowledge_chunkvector"),
        RowSecurity("knowledge_searchsettings"),
        migrations.RunSQL(GOES_WITH_CHUNK, GOES_WITH_CHUNK_REVERSE),
    ]
