"""Markdown as messengers mark it, and texts cut to their length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.messengers.formatting import PLAIN, Style, numbered, pieces, render, whole_text
from apps.messengers.ports import Outbound, OutboundOption
from apps.messengers.telegram import adapter as telegram
from apps.messengers.whatsapp import adapter as whatsapp


@pytest.mark.parametrize(
    ("text", "style", "written"),
    [
        ("**a** *b* `c<d`", telegram.STYLE, "<b>a</b> <i>b</i> <code>c&lt;d</code>"),
        ("**a** *b* `c<d`", whatsapp.STYLE, "*a* _b_ `c<d`"),
        ("**a** *b* `c<d`", PLAIN, "a b c<d"),
        ("# Title\nline one\nline two\n\nnext", PLAIN, "Title\n\nline one\nline two\n\nnext"),
        ("- a\n- b\n  1. c\n  2. d\n- e\n\nf", PLAIN, "• a\n• b\n  1. c\n  2. d\n• e\n\nf"),
        ("3. a\n\n4. b", PLAIN, "3. a\n4. b"),
        ("```\nx = 1\n\ny\n```\nz", telegram.STYLE, "<pre>x = 1\n\ny</pre>\n\nz"),
        ("> said\n\nend", telegram.STYLE, "<blockquote>said</blockquote>\n\nend"),
        ("[shop](https://a.example/?b=1&c=2)", telegram.STYLE, '<a href="https://a.example/?b=1&amp;c=2">shop</a>'),
        ("[shop](https://a.example/)", whatsapp.STYLE, "shop (https://a.example/)"),
        ("https://a.example/x", PLAIN, "https://a.example/x"),
        ("[click](javascript:alert)", telegram.STYLE, "click"),
        ("<script>x</script> & <b>y</b>", telegram.STYLE, "&lt;script&gt;x&lt;/script&gt; &amp; &lt;b&gt;y&lt;/b&gt;"),
        ("As written [1].", PLAIN, "As written."),
        ("![diagram](https://spy.example/x.png)", telegram.STYLE, "diagram"),
        ("", PLAIN, ""),
    ],
)
def test_markdown_is_written_as_the_provider_marks_it(text: str, style: Style, written: str) -> None:
    assert render(text, style) == written


def test_author_and_sources_stand_around_the_text() -> None:
    message = Outbound("Hi", once="a", author="A*da", language="de", sources=[("Terms [v2]", "https://a.example/t")])
    assert render(whole_text(message), PLAIN).startswith("A*da:\n\nHi\n\n")
    assert render(whole_text(message), PLAIN).endswith("• Terms [v2] (https://a.example/t)")


def test_options_are_lines_with_numbers() -> None:
    text = numbered("Which?", [OutboundOption("Red", "a"), OutboundOption("Blue", "b")], language="en")
    assert render(text, PLAIN) == "Which?\n\n1. Red\n2. Blue\n\nReply with the number."


@pytest.mark.parametrize(
    ("text", "most", "cut"),
    [
        ("one\n\ntwo three", 12, ["one", "two three"]),
        ("First is this. Second", 20, ["First is this.", "Second"]),
        ("a" * 30, 24, ["a" * 20, "a" * 10]),
        ("short", 10, ["short"]),
        ("", 10, [""]),
    ],
)
def test_text_is_cut_where_it_may_be(text: str, most: int, cut: list[str]) -> None:
    assert pieces(text, most) == cut


def test_cut_block_of_code_stays_one() -> None:
    first, second, *_ = pieces("```\n" + "line of code\n" * 20 + "```", 200)
    assert first.endswith("\n```")
    assert second.startswith("```\n")


@given(st.text(alphabet="ab👍\n .`", max_size=400), st.integers(min_value=20, max_value=80))
def test_no_piece_is_too_long_and_no_letter_is_lost(text: str, most: int) -> None:
    found = pieces(text, most)
    assert all(len(piece.encode("utf-16-le")) // 2 <= most for piece in found)
    assert "".join(found).count("a") == text.count("a")
    assert "".join(found).count("👍") == text.count("👍")
