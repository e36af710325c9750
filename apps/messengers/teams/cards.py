"""Write messages with buttons as Adaptive Cards. What people and models wrote of a card is a text run, never markup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.messengers.ports import CardButton, CardMessage, OutboundOption

_LONGEST, _MOST_LINES, _MOST_ACTIONS = 900, 30, 6


def question(text: str, options: Sequence[OutboundOption]) -> dict[str, Any]:
    actions = [_submit(option.label, choice=option.choice) for option in options[:_MOST_ACTIONS]]
    return _card([{"type": "TextBlock", "text": text, "wrap": True}], actions)


def file(text: str, label: str, url: str) -> dict[str, Any]:
    return _card([_run(text)], [{"type": "Action.OpenUrl", "title": label, "url": url}])


def card(message: CardMessage) -> dict[str, Any]:
    lines = [_run(line.as_text()) for line in message.lines[:_MOST_LINES]]
    notes = [_run(note, isSubtle=True) for note in message.notes]
    title = _run(message.title, weight="Bolder", size="Medium")
    return _card([title, *lines, *notes], [_action(button) for button in message.buttons])


def _card(body: list[dict[str, object]], actions: list[dict[str, object]]) -> dict[str, object]:
    content = {"type": "AdaptiveCard", "version": "1.4", "body": body, "actions": actions}
    return {"contentType": "application/vnd.microsoft.card.adaptive", "content": content}


def _run(text: str, **style: object) -> dict[str, Any]:
    shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": shown or "-", **style}]}


def _action(button: CardButton) -> dict[str, object]:
    if button.url:
        return {"type": "Action.OpenUrl", "title": button.label, "url": button.url}
    return _submit(button.label, card=button.value)


def _submit(label: str, **data: str) -> dict[str, object]:
    return {"type": "Action.Submit", "title": label, "data": data}
