"""What visitors and staff get of a message's Markdown, and what no message can do."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.sessions.markdown import MAX_CHARS, render_for_visitors
from apps.sessions.models import ChronicleEntry
from apps.sessions.rules import frame_of
from kernel.clock import now
from tests.factories.sessions import make_session

REL = 'target="_blank" rel="noopener noreferrer nofollow"'
ALLOWED = re.compile(
    r'</?(?:p|br|strong|em|code|ul|ol|li|blockquote|pre)>|<ol start="\d+">|<pre tabindex="0">|</?span>|</?a>'
    r'|<span data-cite="\d{1,2}">|<a href="(?:https?://|mailto:)[^"<>]*" ' + REL + ">|<a " + REL + ">"
)


def tags_of(html: str) -> list[str]:
    return re.findall(r"<[^>]*>", html)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<a href=javascript:alert(1)>x</a>",
        "<svg/onload=alert(1)>",
        "<math><mtext><style><img src=x onerror=alert(1)>",
        "![x](https://evil.test/a.png?secret=1)",
        "![x][1]\n\n[1]: https://evil.test/a.png",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](\x01javascript:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:x)",
        "[x](//evil.test)",
        "[x](/console/logout/)",
        "[x](https:evil.test)",
        "[x](https://\\evil.test)",
        "![[x](/console/logout/)](y)",
        "![![[x](//evil.test)](y)](z)",
        "<javascript:alert(1)>",
        '[x](https://a.test/"onmouseover=alert(1))',
        "[x](https://a.test 'a\"onclick=alert(1) b')",
        "`<img src=x onerror=alert(1)>`",
        "```html onload=alert(1)\n<img src=x onerror=alert(1)>\n```",
        "[1]<span data-cite=1 onclick=alert(1)>",
        "[<b>](https://a.test)",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
    ],
)
def test_hostile_text_brings_no_element_attribute_or_address_that_is_not_allowed(text: str) -> None:
    html = render_for_visitors(text)
    assert [tag for tag in tags_of(html) if not ALLOWED.fullmatch(tag)] == []


@given(st.text(alphabet=st.sampled_from(list("<>\"'`[]()!*_&;:/\\# \n-=axhtpsjvcript1.@")), max_size=120))
def test_any_text_brings_only_what_is_allowed(text: str) -> None:
    assert [tag for tag in tags_of(render_for_visitors(text)) if not ALLOWED.fullmatch(tag)] == []


@pytest.mark.parametrize("text", ["[here](javascript:alert(1))", "[here](//evil.test)", "[here](data:text/html,x)"])
def test_link_that_is_no_web_address_is_its_label(text: str) -> None:
    assert render_for_visitors(f"Press {text} now") == "<p>Press here now</p>"


def test_image_is_its_description() -> None:
    assert render_for_visitors("Look ![chart](https://evil.test/a.png) here") == "<p>Look chart here</p>"


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**Yes**, and *maybe* `code`", "<p><strong>Yes</strong>, and <em>maybe</em> <code>code</code></p>"),
        ("one\ntwo", "<p>one<br>\ntwo</p>"),
        ("# Title", "<p><strong>Title</strong></p>"),
        ("3. c\n4. d", '<ol start="3">\n<li>c</li>\n<li>d</li>\n</ol>'),
        ("- a\n  - b", "<ul>\n<li>a\n<ul>\n<li>b</li>\n</ul>\n</li>\n</ul>"),
        ("> said", "<blockquote>\n<p>said</p>\n</blockquote>"),
        ("See [us](https://a.test/x_(y))", f'<p>See <a href="https://a.test/x_(y)" {REL}>us</a></p>'),
        ("See https://a.test/x.", f'<p>See <a href="https://a.test/x" {REL}>https://a.test/x</a>.</p>'),
        ("a@b.test, www.a.test", "<p>a@b.test, www.a.test</p>"),
        ("So [1], not [123]", '<p>So <span data-cite="1">[1]</span>, not [123]</p>'),
        ("`[1]`", "<p><code>[1]</code></p>"),
        ("[1](https://a.test)", f'<p><a href="https://a.test" {REL}>1</a></p>'),
    ],
)
def test_markdown_is_rendered(text: str, html: str) -> None:
    assert render_for_visitors(text) == html


def test_very_long_text_is_left_to_the_widget() -> None:
    assert render_for_visitors("a" * MAX_CHARS)
    assert render_for_visitors("a" * (MAX_CHARS + 1)) == ""


@pytest.mark.parametrize(
    "piece", ["[", "![", "([", "[a](b", "[](<b", "*a_", "**a ", "<", "> ", "- ", "http://", "a\n\n"]
)
def test_no_text_holds_up_the_process_that_records_it(piece: str) -> None:
    text = (piece * MAX_CHARS)[:MAX_CHARS]
    started = time.process_time()
    render_for_visitors(text)
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("sender", "html"), [("bot", "<p><em>Hi</em></p>"), ("human", "<p><em>Hi</em></p>"), ("visitor", None)]
)
def test_frame_of_an_answer_has_its_html(deployment: Any, sender: str, html: str | None) -> None:
    entry = ChronicleEntry(
        session=make_session(deployment), seq=1, kind="message", sender=sender, text="*Hi*", created_at=now()
    )
    frame = frame_of(entry)
    assert frame["text"] == "*Hi*"
    assert frame.get("html") == html
