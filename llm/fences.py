"""Fenced blocks of a Markdown text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.token import Token


def top_fences(text: str) -> list[Token]:
    """Return the fenced code blocks at the top level, in order; `info` is the text after the opening fence."""
    from markdown_it import MarkdownIt

    return [token for token in MarkdownIt("commonmark").parse(text) if token.type == "fence" and token.level == 0]
