"""Finding: by words and by meaning, one tenant's rows, at the visitor's levels, whatever is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.knowledge import queries
from apps.knowledge.models import Chunk, Collection, Document
from kernel.tenancy import ScopeError, tenant_scope
from llm import embedding
from silas_platform.up.embedded import ROLES_SQL
from tests.factories.knowledge import ingest_texts, search

TEXTS = {
    "fire": "# Fire\n\nWe pay when candles set the house on fire.",
    "theft": "# Theft\n\nStolen bicycles are covered up to 500 pounds.",
    "form": "# Paper\n\nUse form HX-4711 to tell us.",
    "hours": "# Hours\n\nThe office opens at nine in the morning.",
}


@pytest.fixture
def knowledge(tenant: Any, tmp_path: Path) -> Any:
    ingest_texts(tenant, tmp_path, **TEXTS)
    return tenant


def quotes(tenant: Any, question: str, **more: Any) -> list[str]:
    return [passage.quote for passage in search(tenant, question, **more)]


# With so many times the chunks, only the nearest are candidates: compared exactly, and by the index.
EXACT, BY_INDEX = 1_000, 10_000


def make_large(tenant: Any, times: int = BY_INDEX) -> None:
    """Let the search believe that there is so many times as much."""
    with tenant_scope(tenant):
        for collection in Collection.objects.all():
            collection.chunk_count *= times
            collection.common_counts = [count * times for count in collection.common_counts]
            collection.save()


def test_search_by_other_words_finds_the_meaning(knowledge: Any) -> None:
    assert quotes(knowledge, "my bike was robbed by thieves")[0] == TEXTS["theft"]


@pytest.mark.parametrize("times", [1, EXACT, BY_INDEX])
def test_search_by_code_finds_the_only_passage_with_it(knowledge: Any, times: int) -> None:
    make_large(knowledge, times)
    assert quotes(knowledge, "Hello, could you please tell me about HX-4711?")[0] == TEXTS["form"]


@pytest.mark.parametrize("times", [EXACT, BY_INDEX])
def test_search_large_knowledge_finds_by_meaning_what_has_none_of_the_words(knowledge: Any, times: int) -> None:
    make_large(knowledge, times)
    assert set(quotes(knowledge, "when do you open")) == set(TEXTS.values())


def test_search_other_tenants_knowledge_is_not_there(knowledge: Any, other_tenant: Any) -> None:
    assert quotes(other_tenant, "bicycles") == []


@pytest.mark.parametrize("times", [1, EXACT, BY_INDEX])
def test_search_among_many_foreign_rows_finds_its_own(
    knowledge: Any, other_tenant: Any, tmp_path: Path, times: int
) -> None:
    near = "\n\n".join(f"## {number}\n\nStolen bicycles are covered up to {number} pounds." for number in range(300))
    ingest_texts(other_tenant, tmp_path, near=near)
    make_large(knowledge, times)
    assert TEXTS["theft"] in quotes(knowledge, "Stolen bicycles are covered up to 500 pounds.")


def test_search_with_the_orm_filter_taken_out_still_sees_one_tenant(knowledge: Any, other_tenant: Any) -> None:
    with tenant_scope(other_tenant):
        assert list(QuerySet(Chunk)) == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT text FROM memory_chunk",
        "SELECT text FROM memory_chunk ORDER BY embedding <=> (SELECT embedding FROM memory_chunk LIMIT 1)",
        "SELECT text FROM memory_chunk WHERE words @@ 'bicycl'::tsquery",
        "SELECT text FROM memory_documentversion",
        "SELECT source_ref FROM memory_document",
        "SELECT name FROM memory_collection",
        "SELECT word FROM ts_stat('SELECT words FROM memory_chunk') LIMIT 1",
    ],
)
def test_raw_sql_in_another_scope_sees_nothing(knowledge: Any, other_tenant: Any, statement: str) -> None:
    with tenant_scope(other_tenant), connection.cursor() as cursor:
        cursor.execute(statement)
        assert cursor.fetchall() == []


def test_search_function_called_for_a_foreign_tenant_finds_nothing(knowledge: Any, other_tenant: Any) -> None:
    vector = str(embedding.embed("bicycles"))
    with tenant_scope(other_tenant), connection.cursor() as cursor:
        cursor.execute(
            "SELECT * FROM memory_search(%s, ARRAY['public'], 'bicycles', %s::vector, 6)", [knowledge.id, vector]
        )
        assert cursor.fetchall() == []


def test_raw_sql_in_another_scope_writes_nothing(knowledge: Any, other_tenant: Any) -> None:
    with tenant_scope(other_tenant), connection.cursor() as cursor:
        cursor.execute("UPDATE memory_collection SET min_level = 'public' WHERE tenant_id = %s", [knowledge.id])
        assert cursor.rowcount == 0


def test_search_outside_a_scope_is_refused(knowledge: Any) -> None:
    with pytest.raises(ScopeError):
        queries.search("bicycles", vector=embedding.embed("bicycles"), levels=("public",))


@pytest.mark.parametrize("times", [1, EXACT, BY_INDEX])
@pytest.mark.parametrize(
    ("levels", "found"),
    [
        ((), []),
        (("public",), ["Open."]),
        (("public", "verified"), ["Open.", "Staff only."]),
        (("verified",), ["Staff only."]),
    ],
)
def test_search_sees_the_collections_of_the_given_levels(
    tenant: Any, tmp_path: Path, levels: tuple[str, ...], found: list[str], times: int
) -> None:
    ingest_texts(tenant, tmp_path, collection="open", a="Open.")
    ingest_texts(tenant, tmp_path, collection="closed", min_level="verified", b="Staff only.")
    make_large(tenant, times)
    assert sorted(quotes(tenant, "open staff", levels=levels)) == found


def test_search_follows_a_changed_level_at_once(knowledge: Any) -> None:
    with tenant_scope(knowledge):
        Collection.objects.update(min_level="verified")
    assert quotes(knowledge, "bicycles") == []


def test_search_is_one_round_trip(knowledge: Any) -> None:
    vector = embedding.embed("bicycles")
    with tenant_scope(knowledge), CaptureQueriesContext(connection) as seen:
        queries.search("bicycles", vector=vector, levels=("public",))
    assert len(seen) == 1


@pytest.mark.parametrize(
    "question",
    [
        *("", " ", "?!", "'", "''", "\\", "a' | 'b", "bicycl:*", "!fire", "fire & !theft", "(", ":", "<->"),
        *(
            "'; DROP TABLE x; --",
            "\x00bicycle\x00",
            "the of and",
            "🚲",
            "漢字",
            "%s %(x)s",
            "x" * 20_000,
            "word " * 5000,
        ),
    ],
)
def test_search_hostile_question_is_answered(knowledge: Any, question: str) -> None:
    assert len(quotes(knowledge, question)) <= 6


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=st.text(max_size=80))
def test_search_any_question_is_answered(knowledge: Any, question: str) -> None:
    assert len(quotes(knowledge, question)) <= 6


def test_search_answers_no_more_than_asked_for(knowledge: Any) -> None:
    assert len(quotes(knowledge, "bicycles", k=2)) == 2


@pytest.mark.parametrize("large", [False, True])
def test_search_near_duplicates_are_folded(tenant: Any, tmp_path: Path, large: bool) -> None:
    text = "Parcels within the city arrive on the next day, before noon, if they were ordered before nine o'clock."
    copies = {f"copy{number}": f"{text} See page {number}." for number in range(5)}
    ingest_texts(tenant, tmp_path, **copies, other="Returns are free for thirty days.")
    if large:
        make_large(tenant)
    assert len(quotes(tenant, "when do parcels arrive", k=2)) == 2
    assert "Returns are free for thirty days." in quotes(tenant, "when do parcels arrive", k=2)


@pytest.mark.parametrize(
    ("text", "config", "question"),
    [
        ("Die Lieferungen kommen in zwei Tagen an und sind ab fünfzig Euro kostenlos.", "german", "Lieferung"),
        ("Les livraisons arrivent en deux jours et sont gratuites pour vous.", "french", "livraison"),
        ("Las entregas llegan en dos días y son gratis para usted.", "spanish", "entrega"),
        ("De leveringen komen binnen twee dagen en zijn gratis voor u.", "dutch", "levering"),
        ("Παραδόσεις φτάνουν σε δύο ημέρες δωρεάν.", "simple", "παραδόσεις"),
        ("Deliveries arrive in two days and they are free for you.", "english", "delivery"),
    ],
)
def test_document_is_found_by_inflected_words_of_its_language(
    tenant: Any, tmp_path: Path, text: str, config: str, question: str
) -> None:
    far = {f"far{number}": f"Chapter {number} tells of lamps, clocks and boat number {number}." for number in range(20)}
    ingest_texts(tenant, tmp_path, told=text, **far)
    with tenant_scope(tenant):
        assert Document.objects.get(source_ref="told.md").search_config == config
        rows = queries_by_words(tenant, question)
    assert rows == [text]


def queries_by_words(tenant: Any, question: str) -> list[str]:
    """The passages that contain a word of the question, best first."""
    with connection.cursor() as cursor:
        vector = str(embedding.embed("nothing that is near"))
        cursor.execute(
            "SELECT * FROM memory_search(%s, ARRAY['public'], %s, %s::vector, 50)", [tenant.pk, question, vector]
        )
        found = [(rank, quote) for *_, quote, _, rank, _, _ in cursor.fetchall() if rank]
    return [quote for _, quote in sorted(found)]


def test_rarer_word_of_the_question_counts_more(tenant: Any, tmp_path: Path) -> None:
    crowd = {f"crowd{number}": f"The parcel number {number} was sent by ship and train." for number in range(30)}
    ingest_texts(tenant, tmp_path, **crowd, rare="The heron was sent.")
    with tenant_scope(tenant):
        assert queries_by_words(tenant, "parcel by heron")[0] == "The heron was sent."


def test_search_score_is_the_similarity(knowledge: Any) -> None:
    (best, *_) = search(knowledge, "Stolen bicycles are covered up to 500 pounds.")
    assert 0.7 < best.score <= 1


def test_search_title_names_document_and_section(tenant: Any, tmp_path: Path) -> None:
    ingest_texts(tenant, tmp_path, home="# Home cover\n\n## Theft\n\nBicycles are covered.")
    assert [passage.title for passage in search(tenant, "bicycles")] == ["Home cover / Theft"]


@pytest.mark.parametrize("large", [False, True])
def test_search_telling_word_beats_a_crowd_of_near_passages(tenant: Any, tmp_path: Path, large: bool) -> None:
    crowd = [f"## Form {number}\n\nWhere do I use form number {number}? Use the form here." for number in range(90)]
    far = "The lighthouse keeper polished every lamp, wound the clock and watched the herring boats sail home. " * 6
    ingest_texts(tenant, tmp_path, crowd="\n\n".join(crowd), far=f"{far} He ate marmalade.")
    if large:
        make_large(tenant)
    assert any("marmalade" in quote for quote in quotes(tenant, "Where do I use the form number here, marmalade?"))


def test_search_rare_name_is_found_beside_many_passages_with_other_words_of_the_question(
    tenant: Any, tmp_path: Path
) -> None:
    said = ("battery", "warranty", "keyboard", "cable", "invoice", "holiday")
    crowd = {
        f"{word}{number}": f"# Chapter {number}\n\nThe {word} is number {number} of this list, as told."
        for word in said
        for number in range(38)
    }
    far = "The lighthouse keeper polished every lamp, wound the clock and watched the herring boats sail home. " * 6
    ingest_texts(tenant, tmp_path, **crowd, far=f"{far} He ate marmalade.")
    assert any("marmalade" in quote for quote in quotes(tenant, f"What about {', '.join(said)} and marmalade?"))


def test_search_without_the_declaration_of_the_database_still_finds(knowledge: Any, superuser_dsn: str) -> None:
    """On a managed server nobody may declare matching leakproof."""
    matching = "FUNCTION pg_catalog.ts_match_vq(tsvector, tsquery)"
    with psycopg.connect(superuser_dsn, autocommit=True) as superuser:
        superuser.execute(f"ALTER {matching} NOT LEAKPROOF")
        try:
            make_large(knowledge)
            assert quotes(knowledge, "HX-4711")[0] == TEXTS["form"]
        finally:
            superuser.execute(ROLES_SQL.read_bytes())


def test_search_words_are_looked_up_in_their_index(knowledge: Any) -> None:
    """Row-level security keeps an index from operators that are not declared leakproof."""
    with tenant_scope(knowledge), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN SELECT id FROM memory_chunk WHERE words @@ 'bicycl'::tsquery")
        assert "memory_chunk_words" in "".join(line for (line,) in cursor)
