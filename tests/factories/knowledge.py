"""Documents for tests: files on disk as a customer would hand them in."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from apps.bus.enums import Queue
from apps.knowledge import services
from apps.knowledge.schemas import IngestReport
from kernel.tenancy import tenant_scope
from tests.factories.work import Hands


def ingest_texts(
    tenant: Any, folder: Path, *, collection: str = "help", min_level: str = "public", **texts: str
) -> IngestReport:
    """Each keyword becomes the Markdown file of that name in `folder`, and all of them are ingested."""
    paths = [folder / f"{name}.md" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return services.ingest(tenant, collection=collection, paths=paths, root=folder, min_level=min_level)


def search(tenant: Any, question: str, *, levels: tuple[str, ...] = ("public",), k: int = 6) -> tuple[Any, ...]:
    from apps.knowledge import queries
    from llm import embedding

    vector = embedding.embed(queries.search_text(question))
    with tenant_scope(tenant):
        return queries.search(question, vector=vector, levels=levels, k=k)


def read_handed_in(tenant: Any) -> None:
    """Have the workers read and store whatever was handed in."""
    Hands(tenant).work(Queue.PARSE, Queue.TRUSTED)


def pdf_of(*pages: str, password: str = "") -> bytes:
    """A PDF with one line of text a page."""
    writer = PdfWriter()
    for text in pages:
        page = writer.add_blank_page(width=400, height=400)
        font = DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
        fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        drawing = DecodedStreamObject()
        drawing.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode("latin-1"))
        page[NameObject("/Contents")] = writer._add_object(drawing)
    if password:
        writer.encrypt(password)
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()
