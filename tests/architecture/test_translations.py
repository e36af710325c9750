"""Texts that people read are marked for translation, and the catalogues, the compiled files and the widget's scripts
are up to date."""

from __future__ import annotations

import ast
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.template.base import Lexer, TokenType

from kernel.language import DEFAULT_LANGUAGE, MEMBER_LANGUAGES
from tests.architecture.source import ROOT
from tools import translations

TEMPLATES = sorted(
    path
    for folder in ("apps", "templates")
    for path in (ROOT / folder).rglob("*")
    if "templates" in path.parts and path.suffix in (".html", ".txt")
)
CONSOLE = sorted((ROOT / "apps" / "console").rglob("*.py"))
# The page of an invented company on which the demo's widget is shown.
UNTRANSLATED = {"demo.html"}
READ_ATTRIBUTES = {"title", "placeholder", "aria-label", "alt", "aria-description", "aria-roledescription"}
# Names, codes and units that are the same in every language.
NAMES = {
    "Silas",
    "API",
    "UTC",
    "URL",
    "JSON",
    "PDF",
    "CSV",
    "SKILL.md",
    "Ctrl",
    "Alt",
    "Shift",
    "Esc",
    "Enter",
    "px",
    "Claude",
    "OpenAI",
    "delete-confirmation",
}
WORD = re.compile(r"[^\W\d_][\w.'-]*[^\W\d_]")
# What a template puts here is checked elsewhere.
HOLE = "\ue000"
FORM_TEXTS = {"label", "help_text", "empty_label", "verbose_name", "verbose_name_plural", "short_description"}
FORM_CALLS = {"ValidationError"}


class Page(HTMLParser):
    """Collects what a reader sees: text, and the attributes that browsers show or read out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        shown = [value for name, value in attrs if value and name in READ_ATTRIBUTES and not _is_example(name, value)]
        if tag == "input" and values.get("type") in ("submit", "button"):
            shown.append(values.get("value") or "")
        self.texts += shown
        self.silent += tag in ("script", "style", "code", "pre", "kbd")

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in ("script", "style", "code", "pre", "kbd")

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.texts.append(data)


def _is_example(attribute: str, value: str) -> bool:
    """Whether a placeholder shows the form of an entry, such as an address or a file name."""
    return attribute == "placeholder" and value == value.lower() and not any(char.isspace() for char in value.strip())


def unmarked_texts(source: str) -> list[str]:
    """The texts of a template that stand outside of its translation tags."""
    page = Page()
    page.feed(_without_tags(source))
    page.close()
    return [
        " ".join(text.replace(HOLE, "…").split())
        for text in page.texts
        if any(word not in NAMES for word in WORD.findall(text.replace(HOLE, " ")))
    ]


def _without_tags(source: str) -> str:
    kept, skipping = [], ""
    for token in Lexer(source).tokenize():
        name = token.contents.split(maxsplit=1)[0] if token.contents.strip() else ""
        if skipping:
            skipping = "" if token.token_type == TokenType.BLOCK and name == skipping else skipping
        elif token.token_type == TokenType.TEXT:
            kept.append(token.contents)
        elif token.token_type == TokenType.VAR:
            kept.append(HOLE)
        elif token.token_type == TokenType.BLOCK:
            # A block named `…_class` holds classes of an element of its parent template.
            if name in ("blocktranslate", "comment") or token.contents.endswith("_class"):
                skipping = f"end{name}"
            # A tag may stand between two words, but it may also stand inside of an HTML tag.
            kept.append(HOLE if name in ("blocktranslate", "translate", "url", "static") else "")
    return "".join(kept)


def unmarked_python(source: str) -> list[str]:
    """Sentences of forms and models that are plain literals."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            values = [keyword.value for keyword in node.keywords if keyword.arg in FORM_TEXTS]
            values += node.args[:1] if name in FORM_CALLS else []
            found += [_literal(value) for value in values]
        if isinstance(node, ast.Assign) and any(
            getattr(target, "id", "") in FORM_TEXTS - {"label"} for target in node.targets
        ):
            found.append(_literal(node.value))
    return [text for text in found if any(word not in NAMES for word in WORD.findall(text))]


def _literal(node: ast.expr) -> str:
    """The text of a literal, also of one with values in it; empty for anything else."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(part.value) for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str))


@pytest.mark.parametrize(
    ("source", "unmarked"),
    [
        ("<p>Save</p>", ["Save"]),
        ('{% translate "Save" %}', []),
        ("<p>{% blocktranslate %}Save {{ name }}{% endblocktranslate %}</p>", []),
        ('<a title="Open it">{{ name }}</a>', ["Open it"]),
        ('<a title="{% translate "Open it" %}">{{ name }}</a>', []),
        ('<input type="submit" value="Send">', ["Send"]),
        ('<input type="text" value="Send">', []),
        ('<input placeholder="https://www.example.com">', []),
        ('<input placeholder="your name">', ["your name"]),
        ("<code>pip</code> {{ n }} · 5 %", []),
        ("{{ n }} left", ["… left"]),
        ("{# Save #}{% comment %}Save{% endcomment %}", []),
        ("{% block stage_class %} with-review{% endblock %}{% block title %}Review{% endblock %}", ["Review"]),
    ],
)
def test_unmarked_text_of_a_template_is_found(source: str, unmarked: list[str]) -> None:
    assert unmarked_texts(source) == unmarked


@pytest.mark.parametrize(
    ("source", "unmarked"),
    [
        ("CharField(label='Name')", ["Name"]),
        ("CharField(label=_('Name'), help_text=f'Up to {most}')", ["Up to "]),
        ("raise ValidationError('No such thing.')", ["No such thing."]),
        ("raise ValidationError(_('No such thing.'))", []),
        ("verbose_name = 'key'", ["key"]),
    ],
)
def test_unmarked_text_of_a_form_is_found(source: str, unmarked: list[str]) -> None:
    assert unmarked_python(source) == unmarked


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_template_marks_its_texts(path: Path) -> None:
    assert path.name in UNTRANSLATED or unmarked_texts(path.read_text()) == []


@pytest.mark.parametrize("path", CONSOLE, ids=lambda path: str(path.relative_to(ROOT)))
def test_console_marks_the_texts_of_its_forms(path: Path) -> None:
    assert unmarked_python(path.read_text()) == []


def test_written_files_are_current() -> None:
    """Otherwise run `make translations` and commit what it writes."""
    stale = [path for path, content in translations.outputs().items() if path.read_bytes() != content]
    assert [str(path.relative_to(ROOT)) for path in stale] == []


PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%%|\{\w*(?::\w)?\}")


@pytest.mark.parametrize("language", [code for code in MEMBER_LANGUAGES if code != DEFAULT_LANGUAGE])
def test_translations_keep_the_placeholders(language: str) -> None:
    """A form of a plural may leave out the number that it stands for."""
    wrong = []
    for message in translations.read_catalogue(language):
        if not message.id or not translations.is_translated(message):
            continue
        sources = message.id if isinstance(message.id, tuple) else (message.id,)
        allowed = [sorted(PLACEHOLDER.findall(source)) for source in sources]
        forms = message.string if isinstance(message.string, tuple) else (message.string,)
        for form in forms:
            placeholders = sorted(PLACEHOLDER.findall(form))
            is_shorter = len(sources) > 1 and set(placeholders) <= set(allowed[-1])
            if placeholders not in allowed and not is_shorter:
                wrong.append(form)
    assert wrong == []


@pytest.mark.parametrize("language", [code for code in MEMBER_LANGUAGES if code != DEFAULT_LANGUAGE])
def test_every_text_is_translated(language: str) -> None:
    missing = translations.missing(translations.read_catalogue(language))
    assert [message.id for message in missing] == []
