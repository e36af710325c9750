import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models

from apps.skills import append_only
from kernel.tenancy.migrations import AppendOnly, RowSecurity, Tables


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("skills", "0001_squashed"),
        ("skills", "0002_shipped_skills"),
        ("skills", "0002_versions_have_a_course"),
        ("skills", "0003_bundled_skills_are_a_manifest"),
        ("skills", "0003_waiting_trials"),
        ("skills", "0004_packages_and_drafts"),
        ("skills", "0004_trials_on_the_bus"),
        ("skills", "0005_plain_labels"),
    ]

    dependencies = [
        ("approvals", "0001_initial"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='SkillVersion',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=64)),
                    ('digest', models.CharField(max_length=64)),
                    ('manifest', models.JSONField()),
                    ('body', models.TextField()),
                    ('number', models.PositiveIntegerField()),
                    ('status', models.CharField(choices=[('proposed', 'Waiting for approval'), ('active', 'In use'), ('disabled', 'Disabled'), ('withdrawn', 'Withdrawn')], max_length=12)),
                    ('source', models.CharField(choices=[('bundled', 'Built-in'), ('folder', 'A folder'), ('archive', 'An archive'), ('git', 'A git repository'), ('maker', 'Written here'), ('package', 'A signed package')], max_length=12)),
                    ('report', models.JSONField(default=dict)),
                    ('requested_by', models.CharField(blank=True, max_length=120)),
                    ('card_id', models.UUIDField(null=True)),
                    ('activated_at', models.DateTimeField(null=True)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('approval_token', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.approvaltoken')),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['name', '-number'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(condition=models.Q(('status', 'proposed')), fields=['tenant', 'created_at'], name='skill_proposed')],
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'name', 'digest'), name='skill_version_once'), models.UniqueConstraint(fields=('tenant', 'name', 'number'), name='skill_number_once')],
                },
            ),
            migrations.CreateModel(
                name='SkillPackage',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=64)),
                    ('number', models.PositiveIntegerField()),
                    ('digest', models.CharField(max_length=64)),
                    ('public_key', models.CharField(max_length=64)),
                    ('publisher', models.CharField(max_length=120)),
                    ('content', models.BinaryField(null=True)),
                    ('state', models.CharField(choices=[('waiting', 'Waiting for review'), ('taken', 'Proposed'), ('refused', 'Refused')], default='waiting', max_length=10)),
                    ('by', models.CharField(max_length=60)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('ended_at', models.DateTimeField(null=True)),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='packages', to='skills.skillversion')),
                ],
                options={
                    'ordering': ['-created_at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(fields=['tenant', 'name', 'public_key', '-number'], name='skill_package_newest')],
                    'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('content__isnull', False), ('state', 'waiting')), models.Q(models.Q(('state', 'waiting'), _negated=True), ('content__isnull', True)), _connector='OR'), name='skill_package_kept_while_waiting')],
                },
            ),
            migrations.CreateModel(
                name='SkillFile',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('path', models.CharField(max_length=200)),
                    ('content', models.BinaryField()),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='files', to='skills.skillversion')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('version', 'path'), name='skill_file_once')],
                },
            ),
            migrations.CreateModel(
                name='SkillDraft',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=64)),
                    ('wish', models.TextField(max_length=4000)),
                    ('revision', models.PositiveIntegerField(default=1)),
                    ('by', models.CharField(max_length=60)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='skills.skillversion')),
                ],
                options={
                    'ordering': ['-updated_at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                },
            ),
            migrations.CreateModel(
                name='TrustedPublisher',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('public_key', models.CharField(max_length=64)),
                    ('name', models.CharField(max_length=120)),
                    ('trusted_by', models.CharField(max_length=60)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['name'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'public_key'), name='skill_publisher_once')],
                },
            ),
            migrations.CreateModel(
                name='PackageKey',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('public_key', models.CharField(max_length=64)),
                    ('sealed_private', models.BinaryField()),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['-created_at'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'public_key'), name='skill_key_once')],
                },
            ),
            migrations.CreateModel(
                name='Record',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('book', models.CharField(max_length=60)),
                    ('key', models.CharField(max_length=80)),
                    ('subject', models.CharField(blank=True, max_length=80)),
                    ('data', models.JSONField(default=dict)),
                    ('revision', models.PositiveIntegerField(default=1)),
                    ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['book', 'key'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(fields=['tenant', 'subject', 'book'], name='record_by_subject')],
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'book', 'key'), name='record_key_once'), models.CheckConstraint(condition=models.Q(('revision__gte', 1)), name='record_revision_counts')],
                },
            ),
            migrations.CreateModel(
                name='DraftRevision',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('number', models.PositiveIntegerField()),
                    ('words', models.TextField(blank=True, max_length=4000)),
                    ('files', models.JSONField()),
                    ('written_by', models.CharField(max_length=120)),
                    ('problems', models.JSONField(default=list)),
                    ('tested', models.JSONField(null=True)),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                    ('draft', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='skills.skilldraft')),
                ],
                options={
                    'ordering': ['-number'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'constraints': [models.UniqueConstraint(fields=('draft', 'number'), name='skill_revision_once')],
                },
            ),
        ),
        RowSecurity("skills_skillversion"),
        RowSecurity("skills_skillpackage"),
        RowSecurity("skills_skillfile"),
        RowSecurity("skills_skilldraft"),
        RowSecurity("skills_trustedpublisher"),
        RowSecurity("skills_packagekey"),
        RowSecurity("skills_record"),
        RowSecurity("skills_draftrevision"),
        AppendOnly("skills", "an installed skill cannot be rewritten", "skills_skillfile"),
        migrations.RunSQL(append_only.COURSE, append_only.COURSE_REVERSE),
    ]
