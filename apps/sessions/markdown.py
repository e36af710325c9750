"""Render the Markdown of recorded messages as clean HTML, for visitors and for staff.

Raw HTML is shown as text and images are never loaded: their address could carry data away. Visitors get links to web
and mail addresses; staff get none, because they should not follow an address that a model made up. What comes of the
Markdown is cleaned by nh3 all the same. The widget renders a growing answer itself and any message without HTML.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

# Longer texts are left to the widget's own script, so that no message holds up the process that records it.
MAX_CHARS = 8_000

_TAGS = {"p", "br", "strong", "em", "code", "pre", "ul", "ol", "li", "blockquote", "h1", "h2", "h3", "h4"}
_VISITOR_TAGS = (_TAGS - {"h1", "h2", "h3", "h4"}) | {"a", "span"}
_VISITOR_ATTRIBUTES: dict[str, set[str]] = {"*": set(), "a": {"href"}, "ol": {"start"}, "span": {"data-cite"}}
_SCHEMES = {"http", "https", "mailto"}
_ADDRESS = re.compile(r"(?:https?://|mailto:)[^\s\\%/]", re.IGNORECASE)
_CITATION = re.compile(r"\[(\d{1,2})\](?!\()")


def render_for_staff(text: str) -> str:
    import nh3

    return nh3.clean(_for_staff().render(text), tags=_TAGS, attributes={"*": set()}, link_rel=None)


@lru_cache(maxsize=256)
def render_for_visitors(text: str) -> str:
    """HTML of a message in which `[n]` is `<span data-cite="n">`; "" for a text that is too long."""
    if len(text) > MAX_CHARS:
        return ""
    import nh3

    return nh3.clean(
        _for_visitors().render(text),
        tags=_VISITOR_TAGS,
        attributes=_VISITOR_ATTRIBUTES,
        set_tag_attribute_values={"a": {"target": "_blank"}, "pre": {"tabindex": "0"}},
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
    ).strip()


def _cite(state: StateInline, silent: bool) -> bool:
    match = _CITATION.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        state.push("citation", "span", 0).content = match[1]
    state.pos = match.end()
    return True


def _unlink(state: StateCore) -> None:
    """Keep the label alone of a link that leads to no web or mail address."""
    for block in state.tokens:
        block.children = _without_refused_links(block.children)


def _without_refused_links(tokens: list[Token] | None) -> list[Token] | None:
    """An image's description is shown, and can hold links of its own."""
    if tokens is None:
        return None
    kept, refused = [], False
    for token in tokens:
        token.children = _without_refused_links(token.children)
        if token.type == "link_open":
            refused = not _ADDRESS.match(str(token.attrs.get("href", "")))
        if not (refused and token.type in ("link_open", "link_close")):
            kept.append(token)
    return kept


def _render_citation(_: object, tokens: Sequence[Token], index: int, *__: object) -> str:
    number = tokens[index].content
    return f'<span data-cite="{number}">[{number}]</span>'


def _render_image(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return str(renderer.render(tokens[index].children or [], options, env)) if tokens[index].children else ""


def _render_heading(_: object, tokens: Sequence[Token], index: int, *__: object) -> str:
    """The page's headings are its own: a message's are bold lines."""
    return "<p><strong>" if tokens[index].nesting == 1 else "</strong></p>\n"


@cache
def _for_visitors() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "linkify": True}).enable("linkify")
    parser.disable("reference")
    assert parser.linkify is not None
    parser.linkify.set({"fuzzy_link": False, "fuzzy_email": False, "fuzzy_ip": False})
    parser.validateLink = lambda url: True  # type: ignore[method-assign] # `_unlink` keeps the label of a refused one
    parser.inline.ruler.before("link", "citation", _cite)
    parser.core.ruler.push("unlink", _unlink)
    parser.add_render_rule("citation", _render_citation)
    parser.add_render_rule("image", _render_image)
    parser.add_render_rule("heading_open", _render_heading)
    parser.add_render_rule("heading_close", _render_heading)
    return parser


@cache
def _for_staff() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True})
    return parser.disable(["link", "image", "autolink", "reference"])
