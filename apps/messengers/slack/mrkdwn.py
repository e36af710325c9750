"""Translate between Markdown and Slack's mrkdwn. Pure."""

from __future__ import annotations

import html
import re

from apps.messengers.ports import Outbound

_CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\((https?://[^\s()]{1,2000})\)")
_BOLD = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_ITALIC = re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])")
_STRUCK = re.compile(r"~~(?=\S)(.+?)(?<=\S)~~")
_HEADING = re.compile(r"^#{1,6}[ \t]([^\n]{1,300})$", re.MULTILINE)
_ITEM = re.compile(r"^([ \t]*)[-*+][ \t]+", re.MULTILINE)
_ADDRESS = re.compile(r"<(https?://|mailto:)([^|>\n]+)(?:\|([^>\n]*))?>")
_REFERENCE = re.compile(r"<[#!@][^|<>\n]{0,80}\|([^<>\n]{0,200})>")


def escape(text: str) -> str:
    """Text as Slack shows it letter by letter; a mention or a link in it is none."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def from_markdown(text: str) -> str:
    parts = _CODE.split(escape(text))
    return "".join(part if number % 2 else _inline(part) for number, part in enumerate(parts))


def message_text(message: Outbound) -> str:
    """The whole of a message: who wrote it if a member did, its text and its sources."""
    author = f"*{escape(message.author)}*\n" if message.author else ""
    sources = "\n".join(f"• <{_url(url)}|{_label(title)}>" for title, url in message.sources)
    return author + "\n\n".join(filter(None, [from_markdown(message.text), sources]))


def plain(text: str, *, bot: str) -> str:
    """What a person wrote, without the mention of the bot and without Slack's marks."""
    text = text.replace(f"<@{bot}>", "") if bot else text
    text = _ADDRESS.sub(lambda found: _written(*found.groups()), text)
    return html.unescape(_REFERENCE.sub(r"\1", text)).strip()


def _inline(text: str) -> str:
    text = _ITEM.sub(r"\1• ", text)
    text = _ITALIC.sub(r"_\1_", text)
    text = _BOLD.sub(r"*\2*", text)
    text = _HEADING.sub(lambda found: "*" + found[1].strip("\t #").replace("*", "") + "*", text)
    text = _STRUCK.sub(r"~\1~", text)
    return _LINK.sub(lambda found: f"<{_url(found[2])}|{found[1] or found[2]}>", text)


def _written(scheme: str, rest: str, label: str | None) -> str:
    address = rest if scheme == "mailto:" else f"{scheme}{rest}"
    return address if not label or label in (address, rest) else f"{label} ({address})"


def _label(text: str) -> str:
    return escape(text).replace("|", "¦").replace("\n", " ")


def _url(url: str) -> str:
    return url.replace("|", "%7C").replace(">", "%3E").replace("<", "%3C")
