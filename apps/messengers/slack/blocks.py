"""Write messages with buttons as Slack's Block Kit. What people and models wrote is plain text there, never markup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.messengers.ports import CardButton, CardMessage, OutboundOption

Block = dict[str, Any]
_LONGEST_SECTION, _LONGEST_LABEL, _LONGEST_LINE, _MOST_LINES, _MOST_BUTTONS = 3000, 75, 900, 30, 25


def question(text: str, options: Sequence[OutboundOption]) -> list[Block]:
    """A text in mrkdwn with a button for each option."""
    pieces = [text[start : start + _LONGEST_SECTION] for start in range(0, len(text), _LONGEST_SECTION)]
    sections = [{"type": "section", "text": {"type": "mrkdwn", "text": piece}} for piece in pieces]
    buttons = [_button(option.label, f"option-{number}", value=option.choice) for number, option in enumerate(options)]
    return [*sections, {"type": "actions", "elements": buttons[:_MOST_BUTTONS]}]


def card(message: CardMessage) -> list[Block]:
    lines = [_plain_section(line.as_text()) for line in message.lines[:_MOST_LINES]]
    notes = [{"type": "context", "elements": [_plain(note, _LONGEST_LINE)]} for note in message.notes]
    buttons = [_card_button(button, number) for number, button in enumerate(message.buttons)]
    actions = [{"type": "actions", "elements": buttons}] if buttons else []
    return [{"type": "header", "text": _plain(message.title, 150)}, *lines, *notes, *actions]


def _card_button(button: CardButton, number: int) -> Block:
    if button.url:
        return {**_button(button.label, f"link-{number}"), "url": button.url}
    style = {"style": "primary"} if button.is_main else {}
    return {**_button(button.label, f"card-{number}", value=f"card:{button.value}"), **style}


def _button(label: str, action_id: str, *, value: str = "") -> Block:
    given = {"value": value} if value else {}
    return {"type": "button", "action_id": action_id, "text": _plain(label, _LONGEST_LABEL), **given}


def _plain_section(text: str) -> Block:
    return {"type": "section", "text": _plain(text, _LONGEST_LINE)}


def _plain(text: str, longest: int) -> Block:
    shown = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return {"type": "plain_text", "text": shown or "-", "emoji": False}
