"""Every kind of card with hostile, hidden, long and right-to-left content: nothing is lost, disguised, reordered, or
cut without saying so."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.approvals.cards.schemas import Fact
from apps.approvals.enums import CardKind
from apps.approvals.models import Card
from kernel.unicode_safety import escape_confusables, escape_hidden, has_hidden_characters
from tests.console.test_cards import _FIXED
from tests.factories.cards import EXAMPLES, make_kind
from tests.factories.console import browser
from tests.factories.work import make_desk

ARABIC, HEBREW = "أرسل المال إلى علي", "שלח כסף לדוד"
HOSTILE = {
    "markup": "<b onclick=alert(1)>Pay</b><!-- gone --><script>x</script>",
    "template": "{{ card.payload }}{% now 'Y' %}",
    "markdown": "[click](javascript:alert(1)) ![x](http://a.test/x.png) **bold** [ref]: http://b.test",
    "arabic": ARABIC,
    "hebrew": HEBREW,
    "entities": "&lt;b&gt; &amp;nbsp; &#8238;",
}
LINKS = {"href", "src", "action", "formaction", "srcset", "style"}
HIDDEN = {
    "zero width": ("4\u200b00", "4⟨U+200B⟩00"),
    "joiner in a number": ("4\u200d00", "4⟨U+200D⟩00"),
    "override": ("\u202e00.4$", "⟨U+202E⟩00.4$"),
    "isolate": ("\u2067left\u2069", "⟨U+2067⟩left⟨U+2069⟩"),
    "soft hyphen": ("ac\u00adme", "ac⟨U+00AD⟩me"),
    "tag": ("a\U000e0041b", "a⟨U+E0041⟩b"),
    "cyrillic": ("p\u0430ypal.com", "p\u0430⟨U+0430⟩ypal.com"),
    "blank letter": ("a\u3164b", "a⟨U+3164⟩b"),
    "grapheme joiner": ("a\u034fb", "a⟨U+034F⟩b"),
    "escape": ("a\x1b[1mb", "a⟨U+001B⟩[1mb"),
}


# Short texts: the sample is in them where it fits.
_MOST = {
    "label": 80,
    "version": 40,
    "suggestion_id": 0,
    "scope_id": 0,
    "cooldown_key": 0,
    "service": 120,
    "skill": 120,
    "pause_id": 120,
    "trigger": 120,
}


def _filled(value: Any, sample: str, most: int = 300) -> Any:
    """The value with `sample` behind each of its free texts that has room for it."""
    if isinstance(value, dict):
        found = {name: _filled(each, sample, _MOST.get(name, 300)) for name, each in value.items()}
        return {name: value[name] if name in _FIXED else each for name, each in found.items()}
    if isinstance(value, list):
        return [_filled(each, sample, min(most, 120)) for each in value]
    fits = isinstance(value, str) and len(value) + len(sample) < most
    return f"{value} {sample}" if fits else value


def _card(tenant: Any, kind: CardKind, sample: str, *, lines: bool = True) -> Card:
    """A card of this kind with the sample in each text that may hold it; the contract refuses what is hidden in the
    lines that stand out, so `lines` says whether these hold it too."""
    given = EXAMPLES[kind]()
    fields: dict[str, Any] = {name: _filled(given[name], sample) for name in ("rationale", "body") if name in given}
    if lines:
        fields["intent"] = f"{given['intent']} {sample}"[:300]
        fields["consequence"] = {name: f"{words} {sample}"[:160] for name, words in given["consequence"].items()}
    fields["payload"] = _filled(given["payload"], sample)
    fields["facts"] = [Fact(f"Label {sample}", text=sample), Fact("Change", before=sample, after=f"then {sample}")]
    call = {"tool": f"act {sample}", "args": {f"name {sample}": sample}, "runs": f"there {sample}"}
    fields["details"] = {"plan": sample, "checks": [{"name": sample}], "gates": [sample], "calls": [call]}
    return make_kind(tenant, kind, **fields)


def _page(client: Client, card: Card) -> str:
    return str(client.get(reverse("console-card", args=[card.pk])).content.decode())


def _article(found: str) -> str:
    start, end = found.index('<article class="card"'), found.index("</article>")
    return found[start:end]


def _read(markup: str) -> str:
    """What a person reads: the text without its tags, as a browser decodes it, blanks as one."""
    text = re.sub(r"<[^>]*>", "\x00", markup)
    return " ".join(html.unescape(text).replace("\x00", " ").split())


class _Attributes(HTMLParser):
    """Collects the attributes of all elements."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [(name, value or "") for name, value in attrs]


def _attributes(markup: str, of: Callable[[str, str], bool]) -> list[tuple[str, str]]:
    """Those attributes of the elements that a browser would find in `markup` for which `of` holds."""
    reader = _Attributes()
    reader.feed(markup)
    assert reader.found
    return [one for one in reader.found if of(*one)]


@pytest.mark.parametrize("kind", CardKind)
def test_text_of_others_is_read_as_it_was_written(tenant: Any, owner: Any, kind: CardKind) -> None:
    """And what is written from right to left stands in an element of its own."""
    client, given = browser(owner), EXAMPLES[kind]()
    for what, sample in HOSTILE.items():
        article = _article(_page(client, _card(tenant, kind, sample)))
        text = _read(article)
        assert f"{given['rationale']} {' '.join(sample.split())}" in text, what
        assert f"{given['intent']} {' '.join(sample.split())}" in text, what
        assert f"Label {' '.join(sample.split())}" in text, what
        assert "<script" not in article, what
        assert _attributes(article, lambda name, _value: name.startswith("on")) == [], what
        assert _attributes(article, lambda name, value: name in LINKS and "http://a.test" in value) == [], what
        if sample in (ARABIC, HEBREW):
            assert _mixed(article, sample) == [], what


def _mixed(article: str, sample: str) -> list[str]:
    """Texts of single elements in which others' text and ours follow one another."""
    beside = re.findall(
        r">([^<>]*)</?(?:bdi|span|b|code|dd|dt|li|h2|p|pre|del|ins|button|a|summary|textarea)\b", article
    )
    return [text for text in beside if sample in text and not text.strip().endswith(sample) and "{" not in text]


@pytest.mark.parametrize("kind", CardKind)
def test_what_cannot_be_seen_or_looks_like_something_else_is_written_out(
    tenant: Any, owner: Any, kind: CardKind
) -> None:
    client = browser(owner)
    for what, (sample, shown) in HIDDEN.items():
        article = _article(_page(client, _card(tenant, kind, sample, lines=False)))
        without_fields = re.sub(r"<textarea.*?</textarea>|value=\"[^\"]*\"", "", article, flags=re.DOTALL)
        assert shown in _read(article), what
        assert sample not in html.unescape(without_fields), what


@pytest.mark.parametrize("kind", CardKind)
def test_long_text_is_shown_to_its_end(tenant: Any, owner: Any, kind: CardKind) -> None:
    long = "long " * 200 + "THE-END"
    card = make_kind(tenant, kind, rationale=long, facts=[Fact("Long", text=f"{long} of the fact")])
    text = _read(_article(_page(browser(owner), card)))
    assert text.count("THE-END") >= 2
    assert "THE-END of the fact" in text


def test_tool_s_own_line_never_takes_the_place_of_ours(tenant: Any, owner: Any, tmp_path: Any) -> None:
    desk = make_desk(tenant, tmp_path, facts=[{"label": "Runs", "text": "in a vault"}])
    text = _read(_article(_page(browser(owner), desk.card(desk.waiting()))))
    assert "Runs (says the tool) in a vault" in text
    assert "Runs By the script of test-desk in a sandbox without network" in text


@pytest.mark.parametrize(
    "text", ["naïve Größe", "Привет мир", "Αθήνα", "हिन्दी\u200dशब्द", "東京 ABC", "👨\u200d👩\u200d👧"]
)
def test_plain_text_of_any_script_stays_as_it_is(text: str) -> None:
    assert escape_confusables(text) == text
    assert not has_hidden_characters(text)


@pytest.mark.parametrize("text", ["H\u200dM-1", "\u200cpay", "pay\u200d"])
def test_joiner_beside_ascii_hides_something(text: str) -> None:
    assert has_hidden_characters(text)
    assert escape_hidden(text) != text
