"""What a hostile model wrote, as staff see it."""

from __future__ import annotations

import re

import pytest

from apps.console.templatetags.console import markdown


@pytest.mark.parametrize(
    "text",
    [
        "[Approve here](https://evil.test/console/login)",
        "<https://evil.test>",
        "![x](https://evil.test/pixel.png)",
        "[a][1]\n\n[1]: https://evil.test",
        '<a href="https://evil.test">press</a>',
        "<img src=https://evil.test/pixel.png>",
        "<script>alert(1)</script>",
        '<b style="position:fixed" onclick="x()">b</b>',
        "[x](javascript:alert(1))",
    ],
)
def test_said_text_has_nothing_to_press_and_loads_nothing(text: str) -> None:
    tags = set(re.findall(r"<(\w+[^>]*)>", markdown(text)))
    assert tags <= {"p", "br", "em", "code"}


def test_said_link_shows_where_it_would_have_led() -> None:
    assert "https://evil.test/login" in markdown("[Approve here](https://evil.test/login)")


def test_said_markdown_keeps_its_emphasis() -> None:
    assert markdown("**Yes**, and `code`") == "<p><strong>Yes</strong>, and <code>code</code></p>\n"
