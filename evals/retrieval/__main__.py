"""`python -m evals.retrieval [--held-back]`: measure how well questions find the documents that answer them.

Four corpora are in one knowledge base beside each other: 68 help-centre articles of a bank (Alder) with 162 questions
of real wording (short, vague, misspelt, in five languages), the two demo handbooks with the questions of
`demo/simulations`, and the reference that comes with Python (`pydoc_data`). Questions are halved by a hash:
tune on the first and judge by the second. A document counts as found at the place of its first passage.

Printed for each stage (words alone, vectors alone, the search): recall at 6, 10 and 50, nDCG at 10, the middle and the
95th percentile of its time in ms.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.stage import servers

HERE = Path(__file__).parent
DEMO = HERE.parents[1] / "demo"
CHAT = DEMO / "simulations"
DEMOS = {"harbor": "harbor-retail", "meridian": "meridian-insurance"}
DEPTHS = (6, 10, 50)


@dataclass(frozen=True)
class Question:
    """`document` is the reference of the document that answers it, or its title in the demo's corpora."""

    corpus: str
    document: str
    text: str

    @property
    def held_back(self) -> bool:
        return hashlib.sha256(self.text.encode()).digest()[-1] % 2 == 1


@dataclass(frozen=True)
class Result:
    """The place of the document that answers (0 is first, None: not among those found), and the time it took in ms."""

    place: int | None
    milliseconds: float


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--held-back", action="store_true", help="judge by the half that nothing was tuned on")
    held_back = parser.parse_args(argv).held_back
    with servers(), tempfile.TemporaryDirectory() as folder:
        tenant = _ingest(Path(folder))
        questions = [question for question in read_questions() if question.held_back == held_back]
        stages: dict[str, Callable[[Any, str, Any], list[tuple[str, str, str]]]] = {
            "words (BM25)": _by_words,
            "vectors": _by_vectors,
            "search": _by_search,
        }
        print(f"{len(questions)} questions of the {'held-back' if held_back else 'tuning'} half\n")
        print(f"{'corpus':20} {'stage':14} questions    R@6   R@10   R@50  nDCG@10    p50    p95")
        for name, stage in stages.items():
            results = {question: _ask(tenant, question, stage) for question in questions}
            for corpus in [*dict.fromkeys(question.corpus for question in questions), ""]:
                chosen = [result for question, result in results.items() if corpus in ("", question.corpus)]
                print(_line(corpus or "all", name, chosen))
    return 0


def read_questions() -> list[Question]:
    questions = []
    for corpus in ("alder", "python"):
        for line in (HERE / f"{corpus}_questions.txt").read_text(encoding="utf-8").splitlines():
            document, _, text = line.partition(" | ")
            questions.append(Question(corpus, document, text))
    for name, folder in DEMOS.items():
        for conversation in yaml.safe_load((CHAT / f"{name}.yaml").read_text(encoding="utf-8"))["conversations"]:
            first = conversation["turns"][0]
            if first.get("cites"):
                questions.append(Question(folder, first["cites"][0]["document"], first["say"]))
    return questions


def read_articles() -> list[dict[str, str]]:
    """The bank's articles, as objects of a JSONL file."""
    articles = []
    for part in (HERE / "alder_articles.md").read_text(encoding="utf-8").split("@@ ")[1:]:
        name, _, text = part.partition("\n")
        title = re.match(r"# (.*)", text)
        assert title is not None, f"the article {name} has no title"
        articles.append({"id": name.strip(), "title": title[1], "text": text.strip()})
    return articles


def _ingest(folder: Path) -> Any:
    from pydoc_data.topics import topics

    from apps.knowledge import services
    from apps.tenants.models import Tenant

    tenant = Tenant.objects.create(slug="retrieval", name="Retrieval")
    corpora = {
        "alder": read_articles(),
        "python": [{"id": name, "title": name, "text": text} for name, text in topics.items()],
    }
    for name, documents in corpora.items():
        path = folder / f"{name}.jsonl"
        path.write_text("\n".join(json.dumps(document) for document in documents), encoding="utf-8")
        services.ingest(tenant, collection=name, paths=[path], root=folder)
    for name in DEMOS.values():
        path = DEMO / name / "knowledge"
        services.ingest(tenant, collection=name, paths=[path], root=path)
    return tenant


def _ask(tenant: Any, question: Question, stage: Callable[[Any, str, Any], list[tuple[str, str, str]]]) -> Result:
    from apps.knowledge.queries import search_text
    from kernel.tenancy import tenant_scope
    from llm.embedding import embed

    vector = embed(search_text(question.text) if stage is _by_search else question.text)
    with tenant_scope(tenant):
        started = time.perf_counter()
        found = stage(tenant, question.text, vector)
        taken = (time.perf_counter() - started) * 1000
    for place, (corpus, reference, title) in enumerate(found):
        if corpus == question.corpus and question.document in (reference.partition("#")[2], title):
            return Result(place, taken)
    return Result(None, taken)


def _by_search(tenant: Any, text: str, vector: Any) -> list[tuple[str, str, str]]:
    from apps.knowledge import queries

    passages = queries.search(text, vector=vector, levels=("public",), k=max(DEPTHS))
    return _documents([passage.document_id for passage in passages])


def _by_vectors(tenant: Any, text: str, vector: Any) -> list[tuple[str, str, str]]:
    from pgvector.django import CosineDistance

    from apps.knowledge.models import Chunk

    nearest = Chunk.objects.order_by(CosineDistance("embedding", vector), "pk")[: max(DEPTHS)]
    return _documents(list(nearest.values_list("version__document_id", flat=True)))


def _by_words(tenant: Any, text: str, vector: Any) -> list[tuple[str, str, str]]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT document_id, word_rank FROM memory_search(%s, ARRAY['public'], %s, %s::vector, %s)",
            [tenant.pk, text, str(vector), 100_000],
        )
        ranked = sorted((rank, document) for document, rank in cursor.fetchall() if rank)
    return _documents([document for _, document in ranked[: max(DEPTHS)]])


def _documents(ids: Sequence[Any]) -> list[tuple[str, str, str]]:
    """(corpus, reference, title) of each document, in this order."""
    from apps.knowledge.models import Document

    rows = Document.objects.filter(pk__in=ids).values_list("pk", "collection__name", "source_ref", "title")
    known = {str(pk): (corpus, reference, title) for pk, corpus, reference, title in rows}
    return [known[str(pk)] for pk in ids]


def _line(corpus: str, stage: str, results: Sequence[Result]) -> str:
    places = [result.place for result in results]
    recalls = [statistics.mean(place is not None and place < depth for place in places) for depth in DEPTHS]
    gain = statistics.mean(1 / math.log2(2 + place) if place is not None and place < 10 else 0 for place in places)
    times = sorted(result.milliseconds for result in results)
    p95 = times[min(len(times) - 1, round(0.95 * len(times)))]
    figures = " ".join(f"{recall:6.2f}" for recall in recalls)
    return f"{corpus:20} {stage:14} {len(results):9} {figures} {gain:8.2f} {statistics.median(times):6.1f} {p95:6.1f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
