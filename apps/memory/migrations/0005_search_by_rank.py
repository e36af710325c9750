"""Rank by BM25 over all words beside vectors, in the text search configuration of each document."""

import django.contrib.postgres.fields
import django.contrib.postgres.search
from django.db import migrations, models

import apps.knowledge.models
from apps.memory.sql import search

WORDS = "ALTER TABLE memory_chunk ALTER COLUMN words DROP EXPRESSION;"
WORDS_REVERSE = """
ALTER TABLE memory_chunk DROP COLUMN words;
ALTER TABLE memory_chunk ADD COLUMN words tsvector GENERATED ALWAYS AS (
    setweight(to_tsvector('english'::regconfig, COALESCE(context, '')), 'A')
        || setweight(to_tsvector('english'::regconfig, COALESCE(text, '')), 'B')
) STORED;
ALTER TABLE memory_chunk ALTER COLUMN words SET STORAGE MAIN;
CREATE INDEX memory_chunk_words ON memory_chunk USING gin (words) WITH (fastupdate = off);
"""


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0004_reworded_labels'),
    ]

    operations = [
        migrations.AddField(
            model_name='collection',
            name='common_counts',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.PositiveIntegerField(), db_default=[], default=list, editable=False, size=None),
        ),
        migrations.AddField(
            model_name='collection',
            name='search_configs',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), db_default=['english'], default=apps.knowledge.models._only_english, editable=False, size=None),
        ),
        migrations.AddField(
            model_name='document',
            name='search_config',
            field=models.CharField(db_default='english', default='english', max_length=20),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(WORDS, WORDS_REVERSE)],
            state_operations=[
                migrations.RemoveField(model_name='chunk', name='words'),
                migrations.AddField(model_name='chunk', name='words', field=django.contrib.postgres.search.SearchVectorField(null=True)),
            ],
        ),
        migrations.RunSQL(
            search.SEARCH_REVERSE + search.RANKED_SEARCH + search.REFRESH_REVERSE + search.REFRESH_COUNTS,
            search.SEARCH_REVERSE + search.SEARCH + search.REFRESH_REVERSE + search.REFRESH,
        ),
    ]
