import django.db.models.deletion
import uuid
from django.db import migrations, models

from apps.audit.sql import chain, heads
from kernel.tenancy.migrations import AppendOnly, RowSecurity, Tables


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("audit", "0001_squashed"),
        ("audit", "0002_head_only_grows"),
        ("audit", "0002_heads"),
        ("audit", "0003_entries_in_words"),
        ("audit", "0003_memories_merged"),
        ("audit", "0004_append_told"),
        ("audit", "0004_simulations"),
        ("audit", "0005_memories_grow"),
        ("audit", "0006_gap_changed"),
        ("audit", "0007_releases"),
        ("audit", "0008_source_changed"),
        ("audit", "0009_curated_memories"),
        ("audit", "0010_answering_programs"),
        ("audit", "0011_contacts"),
        ("audit", "0012_imports"),
        ("audit", "0013_api_keys_rotate"),
        ("audit", "0014_client_keys"),
        ("audit", "0015_decision_links"),
        ("audit", "0016_channels"),
        ("audit", "0017_oauth"),
        ("audit", "0018_programs_invite"),
        ("audit", "0019_programs_settle"),
        ("audit", "0020_cards_in_channels"),
        ("audit", "0021_teams"),
        ("audit", "0022_macros"),
        ("audit", "0023_staff_assistance"),
        ("audit", "0024_apps_change"),
        ("audit", "0025_apps_register_themselves"),
        ("audit", "0026_person_exports"),
        ("audit", "0027_inbox_rules"),
        ("audit", "0028_card_questions"),
        ("audit", "0029_person_erasures"),
        ("audit", "0030_sla"),
        ("audit", "0031_partitions"),
        ("audit", "0032_companies_move"),
        ("audit", "0040_insights"),
    ]

    dependencies = [
        ("tenants", "0001_initial"),
    ]

    operations = [
        Tables(
            migrations.CreateModel(
                name='AuditKey',
                fields=[
                    ('key_id', models.CharField(max_length=16, primary_key=True, serialize=False)),
                    ('public_key', models.CharField(max_length=64)),
                    ('sealed_private', models.BinaryField()),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                ],
            ),
            migrations.CreateModel(
                name='AuditCheckpoint',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('chain', models.UUIDField()),
                    ('seq', models.BigIntegerField()),
                    ('entry_hash', models.CharField(max_length=64)),
                    ('key_id', models.CharField(max_length=16)),
                    ('signature', models.CharField(max_length=120)),
                    ('created_at', models.DateTimeField()),
                    ('tenant', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'ordering': ['chain', 'seq'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(fields=['chain', 'seq'], name='audit_checkpoint_by_chain')],
                },
            ),
            migrations.CreateModel(
                name='AuditHead',
                fields=[
                    ('chain', models.UUIDField(primary_key=True, serialize=False)),
                    ('seq', models.BigIntegerField(default=0)),
                    ('entry_hash', models.CharField(max_length=64)),
                    ('tenant', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'abstract': False,
                    'base_manager_name': 'objects',
                },
            ),
            migrations.CreateModel(
                name='AuditEntry',
                fields=[
                    ('entry_id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('chain', models.UUIDField()),
                    ('seq', models.BigIntegerField()),
                    ('event', models.CharField(max_length=60)),
                    ('actor', models.CharField(max_length=80)),
                    ('subject', models.CharField(blank=True, max_length=80)),
                    ('data', models.TextField()),
                    ('timestamp', models.DateTimeField()),
                    ('prev_hash', models.CharField(max_length=64)),
                    ('entry_hash', models.CharField(max_length=64)),
                    ('tenant', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ],
                options={
                    'verbose_name_plural': 'audit entries',
                    'ordering': ['chain', 'seq'],
                    'abstract': False,
                    'base_manager_name': 'objects',
                    'indexes': [models.Index(fields=['chain', 'subject', 'seq'], name='audit_by_subject'), models.Index(condition=models.Q(('event__in', ('person_wanted', 'taken_over', 'staff_replied', 'gate_blocked', 'gate_asked', 'gate_mutation'))), fields=['chain', 'timestamp'], name='audit_counted_by_time')],
                    'constraints': [models.UniqueConstraint(fields=('chain', 'seq'), name='audit_entry_seq_once')],
                },
            ),
        ),
        RowSecurity("audit_auditcheckpoint"),
        RowSecurity("audit_audithead"),
        RowSecurity("audit_auditentry"),
        migrations.RunSQL(chain.APPEND, chain.APPEND_REVERSE),
        AppendOnly(
            "audit",
            "the audit log cannot be rewritten",
            "audit_auditentry",
            "audit_auditcheckpoint",
            named={"audit_auditentry": "audit_entry", "audit_auditcheckpoint": "audit_checkpoint"},
        ),
        migrations.RunSQL(chain.GROW, chain.GROW_REVERSE),
        migrations.RunSQL(chain.FIND, chain.FIND_REVERSE),
        migrations.RunSQL(heads.HEADS, heads.HEADS_REVERSE),
    ]
