"""Small, and nothing in it that a strict page would block: what the files promise (contract interfaces)."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from apps import widgets
from apps.widgets import views
from kernel.language import LANGUAGES

ROOT = Path(widgets.__file__).parent
LOADER = ROOT / "static/widgets/loader.js"
FRAME = sorted(path for path in (ROOT / "static/widgets/frame").rglob("*") if path.is_file())
SCRIPTS = [LOADER, *(path for path in FRAME if path.suffix == ".js")]
PAGES = sorted((ROOT / "templates/widgets").glob("*.html"))


def test_loader_is_at_most_8_kb_gzipped() -> None:
    assert len(gzip.compress(LOADER.read_bytes())) <= 8 * 1024


def _gzipped(files: Iterable[Path]) -> int:
    return sum(len(gzip.compress(path.read_bytes())) for path in files)


def test_what_is_loaded_until_the_first_message_can_be_sent_is_at_most_60_kb_gzipped() -> None:
    """The loader, the frame, what `main.js` imports at once, and the largest of the languages."""
    frame = ROOT / "static/widgets/frame"
    texts = max((frame / "locales").glob("*.js"), key=lambda path: _gzipped([path]))
    scripts = [frame / "main.js", *(frame / name for name in views.first_modules()), texts]
    assert _gzipped([LOADER, ROOT / "templates/widgets/frame.html", frame / "frame.css", *scripts]) <= 60 * 1024


def test_whole_widget_in_all_languages_is_at_most_90_kb_gzipped() -> None:
    assert _gzipped([LOADER, *FRAME, ROOT / "templates/widgets/frame.html"]) <= 90 * 1024


def test_what_few_visitors_use_is_not_in_the_first_load() -> None:
    first = views.first_modules()
    assert {"chat.js", "composer.js", "socket.js"} <= set(first)
    assert not {"files.js", "rating.js", "secret.js", "passage.js", "cards.js", "prechat.js", "articles.js"} & set(
        first
    )
    assert not [name for name in first if name.startswith("locales/")]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script_never_parses_text_as_html_or_code(script: Path) -> None:
    sinks = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|\beval\(|new Function|DOMParser"
    found = re.findall(sinks, script.read_text())
    assert found == (["DOMParser"] if script.name == "dom.js" else [])


def test_only_html_that_the_server_rendered_is_parsed() -> None:
    calls = {script.name: re.findall(r"\bparsed\(([^)]*)\)", script.read_text()) for script in SCRIPTS}
    assert {name: arguments for name, arguments in calls.items() if arguments} == {
        "articles.js": ["html"],
        "dom.js": ["html"],
        "log.js": ["html"],
    }


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script_has_no_pattern_that_older_browsers_cannot_read(script: Path) -> None:
    """Safari before 16.4 refuses a whole module for one that looks behind."""
    assert not re.search(r"\(\?<[=!]", script.read_text())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script_posts_messages_to_exact_origins_only(script: Path) -> None:
    assert not re.search(r'postMessage\([^;]*["\']\*["\']', script.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_page_has_no_inline_script_or_style(page: Path) -> None:
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page.read_text())


@pytest.mark.parametrize("path", [*SCRIPTS, *PAGES], ids=lambda path: path.name)
def test_file_names_no_foreign_host(path: Path) -> None:
    assert set(re.findall(r"https?://[\w.]+", path.read_text())) <= {"http://www.w3.org"}


def test_words_are_whole_in_every_language() -> None:
    """The same names, with the same placeholders; Arabic alone has more plural forms."""
    spoken = {path.stem: _words(path) for path in FRAME if path.parent.name == "locales"}
    assert {language: words ^ spoken["en"] for language, words in spoken.items()} == {key: set() for key in LANGUAGES}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_every_word_that_is_asked_for_is_there(script: Path) -> None:
    source = script.read_text()
    asked = set(re.findall(r'\bt\("(\w+)"', source))
    asked |= {f"panel_{name}" for name in re.findall(r'\bpanelText\("(\w+)"', source)}
    assert asked <= {name for name, _ in _words(ROOT / "static/widgets/frame/locales/en.js")}


def _words(path: Path) -> set[tuple[str, tuple[str, ...]]]:
    found = re.findall(r'(\w+): "((?:[^"\\]|\\.)*)"', path.read_text())
    forms = {"zero", "one", "two", "few", "many", "other", "dir"}
    return {(name, tuple(sorted(re.findall(r"{(\w+)}", text)))) for name, text in found if name not in forms}
