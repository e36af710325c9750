"""Bring the translations up to date: `make translations`.

Collects the marked texts of the product's Python files and templates, and those of `apps/widgets/texts.py`; updates
`locale/<language>/LC_MESSAGES/django.po`, where new texts appear without a translation and unused ones go; compiles the
`django.mo` beside it; and writes the widget's scripts of texts and the list of texts that are stored in English. All of
these files are committed.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

from apps.widgets.texts import TEXTS, Counted
from kernel.language import DEFAULT_LANGUAGE, LANGUAGES, MEMBER_LANGUAGES
from kernel.stored_texts import LISTED

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("apps", "kernel", "llm", "sandbox", "silas_platform", "templates")
TRANSLATED = tuple(code for code in LANGUAGES if code != DEFAULT_LANGUAGE)
SCRIPTS = ROOT / "apps/widgets/static/widgets/frame/locales"
WIDGET = "widget"
_SKIPPED = {"migrations", "static", "__pycache__"}
_KEYWORDS = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop", "stored_text"), None),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), (1, 2)),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), ((1, "c"), 2)),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), ((1, "c"), 2, 3)),
}
# Catalogues carry no time of their own: the same texts give the same bytes.
_TIMELESS = datetime(2026, 1, 1, tzinfo=UTC)
_HEADER = "# Translations of the product. `make translations` adds what is new; fill in the empty msgstr.\n"
_CLDR_FORMS = {2: ("one", "other"), 6: ("zero", "one", "two", "few", "many", "other")}


class Text(NamedTuple):
    """A text of the source: its singular and, if it has one, its plural, in a context that tells equal texts apart."""

    singular: str
    plural: str
    context: str


def collect_texts() -> dict[Text, list[str]]:
    """Every text that is to be translated, with the files that use it."""
    used: dict[Text, list[str]] = {}
    for path in _sources():
        name = str(path.relative_to(ROOT))
        for text in _texts_of(path):
            files = used.setdefault(text, [])
            if name not in files:
                files.append(name)
    for value in TEXTS.values():
        used.setdefault(_of_widget(value), ["apps/widgets/texts.py"])
    return used


def _sources() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            is_source = path.suffix in (".py", ".html", ".txt") or (path.suffix == ".js" and "templates" in path.parts)
            if is_source and _SKIPPED.isdisjoint(path.parts):
                yield path


def _texts_of(path: Path) -> Iterator[Text]:
    source = path.read_text()
    if path.suffix != ".py":
        if "i18n" not in source:
            return
        # Everything else of a template becomes words without meaning, whose indentation would trip a reader of Python.
        source = "\n".join(line.lstrip() for line in templatize(source, origin=str(path)).splitlines())
    for _, found, _, context in extract("python", io.BytesIO(source.encode()), keywords=_KEYWORDS):
        singular, plural = found if isinstance(found, tuple) else (found, "")
        if singular:
            yield Text(singular, plural or "", context or "")


def _of_widget(value: str | Counted) -> Text:
    return Text(value.one, value.other, WIDGET) if isinstance(value, Counted) else Text(value, "", WIDGET)


def collect_stored_texts() -> list[str]:
    """The texts that are stored in English and translated when they are shown, for `kernel.stored_texts`."""
    keywords = {"stored_text": None}
    python = [path for path in _sources() if path.suffix == ".py"]
    found = (extract("python", io.BytesIO(path.read_bytes()), keywords=keywords) for path in python)
    return sorted({str(text) for texts in found for _, text, _, _ in texts if text})


def catalogue_file(language: str) -> Path:
    return ROOT / "locale" / language / "LC_MESSAGES" / "django.po"


def read_catalogue(language: str) -> Catalog:
    """The language's translations as they are now; empty for a new language."""
    path = catalogue_file(language)
    if not path.exists():
        return Catalog(locale=language)
    with path.open("rb") as file:
        return read_po(file, locale=language)


def updated(old: Catalog, texts: dict[Text, list[str]]) -> Catalog:
    """The catalogue of exactly these texts, with the translations that are known.

    A language for visitors only lists the widget's texts and those that are translated.
    """
    new = Catalog(
        locale=old.locale, project="", version="", creation_date=_TIMELESS, revision_date=_TIMELESS, fuzzy=False
    )
    for text, files in sorted(texts.items()):
        ids: str | tuple[str, str] = (text.singular, text.plural) if text.plural else text.singular
        message = old.get(text.singular, text.context or None)
        fits = message and is_translated(message) and isinstance(message.string, tuple) == bool(text.plural)
        known = message.string if message and fits else None
        if str(old.locale) not in MEMBER_LANGUAGES and not known and text.context != WIDGET:
            continue
        new.add(ids, known, locations=[(file, None) for file in sorted(files)], context=text.context or None)
    return new


def as_po(catalogue: Catalog) -> bytes:
    body = io.BytesIO()
    write_po(body, catalogue, width=100, omit_header=True, include_lineno=False)
    names = ("Language", "Plural-Forms", "Content-Type")
    header = "".join(f'"{name}: {value}\\n"\n' for name, value in catalogue.mime_headers if name in names)
    return f'{_HEADER}msgid ""\nmsgstr ""\n{header}\n'.encode() + body.getvalue()


def as_mo(catalogue: Catalog) -> bytes:
    """Only what is translated: everything else is shown in English."""
    complete = Catalog(locale=catalogue.locale, creation_date=_TIMELESS, revision_date=_TIMELESS, fuzzy=False)
    for message in catalogue:
        if message.id and is_translated(message):
            complete.add(message.id, message.string, context=message.context)
    body = io.BytesIO()
    write_mo(body, complete)
    return body.getvalue()


def is_translated(message: Message) -> bool:
    """Whether there is a translation in every form."""
    return all(message.string) if isinstance(message.string, tuple) else bool(message.string)


def as_script(catalogue: Catalog | None, language: str) -> str:
    """The widget's texts as a module of JavaScript; the catalogue is None for English."""
    lines = [f"/* The widget in {LANGUAGES[language]}, written by `make translations`. */", ""]
    lines += [f"export const {language} = {{", f'  dir: "{"rtl" if language == "ar" else "ltr"}",']
    for name, value in TEXTS.items():
        lines.append(f"  {name}: {_in_javascript(_translated(catalogue, value))},")
    return "\n".join([*lines, "};", ""])


def _translated(catalogue: Catalog | None, value: str | Counted) -> str | dict[str, str]:
    message = catalogue.get(_of_widget(value).singular, WIDGET) if catalogue else None
    if not isinstance(value, Counted):
        return str(message.string or value) if message else value
    if message is None or not is_translated(message):
        return value._asdict()
    return dict(zip(_CLDR_FORMS[len(message.string)], message.string, strict=True))


def _in_javascript(value: str | dict[str, str]) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return "{ " + ", ".join(f"{form}: {_in_javascript(text)}" for form, text in value.items()) + " }"


def outputs() -> dict[Path, bytes]:
    """Every file that is written, with what belongs in it."""
    texts = collect_texts()
    files: dict[Path, bytes] = {SCRIPTS / f"{DEFAULT_LANGUAGE}.js": as_script(None, DEFAULT_LANGUAGE).encode()}
    for language in TRANSLATED:
        catalogue = updated(read_catalogue(language), texts)
        po = catalogue_file(language)
        files[po], files[po.with_suffix(".mo")] = as_po(catalogue), as_mo(catalogue)
        files[SCRIPTS / f"{language}.js"] = as_script(catalogue, language).encode()
    files[LISTED] = (json.dumps(collect_stored_texts(), ensure_ascii=False, indent=1) + "\n").encode()
    return files


def missing(catalogue: Catalog) -> list[Message]:
    return [message for message in catalogue if message.id and not is_translated(message)]


def main() -> None:
    for path, content in outputs().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
    for language in TRANSLATED:
        catalogue = read_catalogue(language)
        print(f"{language}: {len(catalogue)} texts, {len(missing(catalogue))} without a translation")


if __name__ == "__main__":
    main()
