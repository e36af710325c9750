"""Collect a tool's arguments from what the visitor wrote, find the missing ones and word the next question. Pure.

A value is taken only when its kind says how to read it, or when the bot asked for exactly this argument; the schema
decides in the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from llm.briefing import ToolBrief
from llm.offline import values
from llm.offline.intents import looks_like_question
from llm.offline.words import content, words

_POSTAL = {
    "street": "street",
    "line1": "street",
    "postcode": "postcode",
    "zip": "postcode",
    "zipcode": "postcode",
    "city": "city",
    "town": "city",
}
_MONEY = {"amount", "price", "value", "refund", "cost", "sum", "total", "payment", "premium"}
_ACCOUNT = {"description", "reason", "details", "detail", "note", "comment", "cause", "happened", "message"}
_AFTER_COLON = re.compile(r"(?:\bbecause\b|:(?=\s))\s*(?P<rest>.{8,})$", re.I | re.S)


class Kind(Enum):
    CHOICE = auto()
    BOOLEAN = auto()
    NUMBER = auto()
    DATE = auto()
    ID = auto()
    EMAIL = auto()
    PHONE = auto()
    ADDRESS = auto()
    POSTAL_PART = auto()
    TEXT = auto()


def properties(tool: ToolBrief) -> Mapping[str, Mapping[str, Any]]:
    schemas: Mapping[str, Mapping[str, object]] = tool.parameters.get("properties") or {}
    return schemas


def kind_of(name: str, schema: Mapping[str, object]) -> Kind:
    parts = set(words(name.replace("_", " ")))
    match schema:
        case {"enum": _}:
            return Kind.CHOICE
        case {"type": "boolean"}:
            return Kind.BOOLEAN
        case {"type": "integer" | "number"}:
            return Kind.NUMBER
        case {"format": "date"}:
            return Kind.DATE
        case {"format": "email"}:
            return Kind.EMAIL
        case {"pattern": str(pattern)} if values.is_specific(pattern) and not parts & set(_POSTAL):
            return Kind.ID
    return _kind_by_name(parts)


def _kind_by_name(parts: set[str]) -> Kind:
    if parts & {"phone", "mobile", "telephone"}:
        return Kind.PHONE
    if parts & {"email", "mail"}:
        return Kind.EMAIL
    if "date" in parts:
        return Kind.DATE
    if parts & set(_POSTAL) or {"postal", "code"} <= parts:
        return Kind.POSTAL_PART
    return Kind.ADDRESS if "address" in parts else Kind.TEXT


def collect(tool: ToolBrief, text: str, *, asked: str | None = None, today: str = "") -> dict[str, object]:
    """The arguments that `text` gives: what can be read from it, and the answer to `asked`. Only values the schema
    allows.
    """
    collected = {name: _find_value(name, schema, tool, text, today) for name, schema in properties(tool).items()}
    collected |= {
        name: value
        for name, value in _postal_parts(tool, values.find_address(text)).items()
        if collected.get(name) is None
    }
    if asked in collected and collected[asked] is None:
        collected |= _answer(asked, tool, text, today)
    return valid(tool, {name: value for name, value in collected.items() if value is not None})


def valid(tool: ToolBrief, args: Mapping[str, object]) -> dict[str, object]:
    """`args` without the ones that the tool's schema refuses or does not know."""
    from jsonschema import Draft202012Validator

    known = properties(tool)
    return {
        name: value
        for name, value in args.items()
        if name in known and Draft202012Validator(known[name]).is_valid(value)
    }


def missing(tool: ToolBrief, args: Mapping[str, object]) -> list[str]:
    return [name for name in tool.parameters.get("required") or () if name not in args]


def fits(tool: ToolBrief, args: Mapping[str, object]) -> bool:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(tool.parameters).is_valid(dict(args))


def label(tool: ToolBrief, name: str) -> str:
    return str(properties(tool).get(name, {}).get("title") or name.replace("_", " ")).lower()


def question(tool: ToolBrief, name: str) -> str:
    return tool.ask.get(name) or f"What is the {label(tool, name)}?"


def _find_value(name: str, schema: Mapping[str, Any], tool: ToolBrief, text: str, today: str) -> object | None:
    match kind_of(name, schema):
        case Kind.CHOICE:
            return values.find_choice(text, schema["enum"])
        case Kind.ID:
            return values.find_pattern(text, schema["pattern"])
        case Kind.NUMBER:
            return _number(name, schema, text)
        case Kind.DATE:
            return values.find_date(text, today)
        case Kind.EMAIL:
            return values.find_email(text)
        case Kind.PHONE:
            return values.find_phone(text)
        case Kind.ADDRESS:
            return values.find_address(_without_ids(tool, text))
        case Kind.TEXT if set(words(name.replace("_", " "))) & _ACCOUNT:
            match_ = _AFTER_COLON.search(text)
            return match_["rest"].strip() if match_ else None
        case _:
            return None


def _number(name: str, schema: Mapping[str, object], text: str) -> int | float | None:
    """Unasked, a number counts only with its currency, or with the argument's own name beside it ("quantity 3")."""
    if set(words(name.replace("_", " "))) & _MONEY:
        return values.find_number(text, money_only=True)
    named = re.search(rf"\b{re.escape(name.replace('_', ' '))}\b\D{{0,6}}(-?\d+(?:\.\d+)?)(?![\w.,-])", text, re.I)
    return values.find_number(named[1]) if named else None


def _answer(name: str, tool: ToolBrief, text: str, today: str) -> dict[str, object]:
    """The value of the argument the bot has just asked for; for a part of an address, of its neighbours too."""
    schema = properties(tool)[name]
    match kind_of(name, schema):
        case Kind.NUMBER:
            return {name: values.find_number(_without_ids(tool, text))}
        case Kind.BOOLEAN:
            return {name: values.find_bool(text)}
        case Kind.POSTAL_PART:
            return _postal_parts(tool, values.clean_answer(text)) or {name: _free_text(text)}
        case Kind.ADDRESS:
            address = _free_text(_without_ids(tool, text))
            return {name: address if address and len(words(address)) >= 2 else None}
        case Kind.TEXT:
            return {name: _free_text(text)}
        case _:
            return {name: None}


def _free_text(text: str) -> str | None:
    """Any words are an answer, except a question in return."""
    return None if looks_like_question(text) else values.clean_answer(text) or None


def _postal_parts(tool: ToolBrief, address: str | None) -> dict[str, object]:
    parts = values.address_parts(address) if address else {}
    parts_by_name = {
        name: _postal_part(name)
        for name, schema in properties(tool).items()
        if kind_of(name, schema) is Kind.POSTAL_PART
    }
    return {name: parts[part] for name, part in parts_by_name.items() if part in parts}


def _postal_part(name: str) -> str:
    parts = words(name.replace("_", " "))
    return next((_POSTAL[part] for part in parts if part in _POSTAL), "postcode")


def _without_ids(tool: ToolBrief, text: str) -> str:
    """`text` without the ids that are values of the tool's other arguments, so that their digits are not read twice."""
    for name, schema in properties(tool).items():
        if kind_of(name, schema) is Kind.ID:
            value = values.find_pattern(text, schema["pattern"])
            text = (
                re.sub(rf"(?:\b(?:for|on) )?(?:my )?(?:\b\w+ )?{re.escape(value)}", " ", text, flags=re.I)
                if value
                else text
            )
    return text


def other_words(tool: ToolBrief, text: str) -> set[str]:
    """The meaningful words of `text` that are not values of an id argument."""
    return set(content(_without_ids(tool, text)))
