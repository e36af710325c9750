"""References, content hashes, argument checks, a card's facts, and which changes of records a tool may make. Decided
from values alone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from apps.skills.schemas import DIGEST_CHARS, Change, CreateChange, FactSpec, SetChange, ToolSpec
from kernel.canonical import canonical_json, sha256_hex
from kernel.provenance import leaves

MAX_CHANGES, MAX_CHANGE_BYTES = 20, 100_000
_CHANGES: TypeAdapter[list[Change]] = TypeAdapter(list[Change])
# What a card says of a value that is not stored.
NOT_ON_RECORD = "not on record"
_SLOT = re.compile(r"\{(\w+)\}")
# Words of argument names that decide where something goes, and how much of it, in seven languages.
_DESTINATION_WORD_LIST = """
    to cc bcc recipient recipients receiver payee beneficiary creditor destination target
    address addresses street city town postcode zip email mail emailaddress mailbox
    url uri link href website webhook callback endpoint host domain server ip channel
    phone phonenumber tel telephone mobile fax whatsapp
    account accountnumber bank bankaccount iban bic swift routing sortcode wallet
    amount sum total price payment payout refund transfer charge fee cents
    empfanger empfaenger anschrift adresse konto kontonummer betrag summe telefon
    destinataire compte montant destinatario direccion correo cuenta importe monto telefono
    endereco conta valor indirizzo conto importo ontvanger adres rekening bedrag
"""
_DESTINATION_WORDS = frozenset(_DESTINATION_WORD_LIST.split())
_DESTINATION_FORMATS = frozenset(
    {"email", "idn-email", "uri", "uri-reference", "iri", "iri-reference", "hostname", "ipv4"}
)
_MOST_READ = 20_000
_DESTINATION = re.compile(
    r"\b[a-z][a-z0-9+.\-]{1,11}://[^\s<>\"']{1,2000}"
    r"|\bwww\.[^\s<>\"']{1,2000}"
    r"|(?<![\w.+\-])[\w.+\-]{1,64}@[\w\-]{1,63}(?:\.[\w\-]{1,63}){1,5}"
    r"|\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}\b"
    r"|(?<![\w+])(?:\+|00)\d(?:[ ().\-]{0,2}\d){7,14}(?!\d)"
    # An account or card number, but no date; a wallet; a host with its path or a usual ending.
    r"|(?<![\w.,\-/])(?!(?:19|20)\d\d-\d\d-\d\d(?!\d))\d(?:[ \-]?\d){7,33}(?![\w\-])"
    r"|\b(?:0x[0-9a-f]{40}|bc1[02-9ac-hj-np-z]{11,71})\b"
    r"|(?<![\w.@\-])[a-z0-9\-]{1,63}(?:\.[a-z0-9\-]{1,63}){0,4}"
    r"\.(?:(?:com|net|org|info|biz|io|app|dev|xyz|top|site|shop|ru|cn|de|fr|es|it|nl|uk|ch|at|jp)\b|[a-z]{2,24}(?=/))"
    r"[^\s<>\"']{0,2000}",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"(?:[€$£¥]|\b(?:eur|euro|usd|gbp|chf|jpy))\s?(\d[\d.,'\u00a0\u202f]{0,20})"
    r"|(?<![\w.,])(\d[\d.,'\u00a0\u202f]{0,20})\s?(?:[€$£¥]|(?:euros?|eur|dollars?|usd|gbp|chf|jpy|yen)\b)",
    re.IGNORECASE,
)


def is_skill_name(name: str) -> bool:
    return len(name) <= 64 and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) is not None


def content_digest(files: Mapping[str, bytes]) -> str:
    """Return the hash of a folder's contents: of every path with the hash of its bytes."""
    return sha256_hex({path: sha256_hex(content) for path, content in files.items()})


def reference(name: str, digest: str) -> str:
    return f"{name}@{digest[:DIGEST_CHARS]}"


def split_reference(ref: str) -> tuple[str, str]:
    """Return (name, start of the digest); the digest is "" when the newest version is meant."""
    name, _, digest = ref.partition("@")
    return name, digest


def egress_of(hosts: Sequence[str]) -> tuple[str, ...]:
    """Return the declared hosts as places with a port, 443 where none is given. A slot that only a connection fills is
    left out."""
    return tuple(host if ":" in host else f"{host}:443" for host in hosts if not host.startswith("{"))


def argument_problem(tool: ToolSpec, args: Mapping[str, object]) -> str:
    """Return what is wrong with the first argument that does not fit the tool's schema, formats included; "" when all
    fit. It may repeat the arguments: it is for the model that wrote them only."""
    error = _first_error(tool, args)
    if error is None:
        return ""
    where = ".".join(str(part) for part in error.absolute_path)
    return f"{where}: {error.message}"[:200] if where else error.message[:200]


def faulty_argument(tool: ToolSpec, args: Mapping[str, Any]) -> str:
    """Return the title of the argument that does not fit; "" for none, or for one that the tool does not take."""
    error = _first_error(tool, args)
    if error is None:
        return ""
    properties: Mapping[str, Any] = tool.args.get("properties") or {}
    missing = [name for name in error.validator_value if name not in args] if error.validator == "required" else []
    argument = next((name for name in (*error.absolute_path, *missing) if name in properties), "")
    return str(properties[argument].get("title") or argument) if argument else ""


def decides_destination(tool: ToolSpec, name: str, value: object) -> bool:
    """True when this argument decides where something goes: to whom, to which account or address, or how much.

    The tool's author names such arguments (`decides`), beside those whose name or format says so.
    """
    properties: Mapping[str, object] = tool.args.get("properties") or {}
    schema = properties.get(name)
    declared = str(schema.get("format", "")) if isinstance(schema, Mapping) else ""
    return (
        name in tool.decides
        or declared in _DESTINATION_FORMATS
        or _names_destination(name)
        or _has_destination_names(value)
    )


def has_listed_values(tool: ToolSpec, name: str) -> bool:
    """True when the tool's author lists the values that this argument may have."""
    schema = (tool.args.get("properties") or {}).get(name)
    return isinstance(schema, Mapping) and ("enum" in schema or "const" in schema or schema.get("type") == "boolean")


def undeclared_names(tool: ToolSpec, value: object) -> list[str]:
    """Return the names inside a value that its tool does not declare: the author of the value chose them."""
    declared = set(_declared(tool.args))
    return [name for name in _names(value) if name not in declared]


def destinations_in(value: object) -> list[str]:
    """Return the web and mail addresses, bank accounts and telephone numbers inside the texts and names of a value."""
    texts = [*(leaf for leaf in leaves(value) if isinstance(leaf, str)), *_names(value)]
    return [match[0] for text in texts for match in _DESTINATION.finditer(text[:_MOST_READ])]


def amounts_in(value: object) -> list[str]:
    """Return the amounts of money inside the texts of a value, as they are written."""
    texts = [leaf for leaf in leaves(value) if isinstance(leaf, str)]
    matches = [match for text in texts for match in _AMOUNT.finditer(text[:_MOST_READ])]
    return [(leaf[1] or leaf[2]).rstrip(".,'") for leaf in matches]


def _names(value: object) -> Iterator[str]:
    """Yield the names in all objects inside."""
    if isinstance(value, Mapping):
        yield from map(str, value)
    for part in value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ():
        yield from _names(part)


def _declared(schema: object) -> Iterator[str]:
    """Yield the names of all properties that a schema declares, its parts and definitions included."""
    if isinstance(schema, Mapping):
        properties = schema.get("properties")
        yield from properties if isinstance(properties, Mapping) else ()
    for part in schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list) else ():
        yield from _declared(part)


def _names_destination(name: str) -> bool:
    bare = "".join(char for char in unicodedata.normalize("NFKD", name) if not unicodedata.combining(char))
    words = re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", bare).lower())
    return not _DESTINATION_WORDS.isdisjoint(words)


def _has_destination_names(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(_names_destination(str(name)) or _has_destination_names(part) for name, part in value.items())
    return isinstance(value, list | tuple) and any(map(_has_destination_names, value))


def _first_error(tool: ToolSpec, args: Mapping[str, object]) -> Any:
    from jsonschema import Draft202012Validator, FormatChecker

    validator = Draft202012Validator(tool.args, format_checker=FormatChecker())
    return next(iter(sorted(validator.iter_errors(dict(args)), key=lambda error: list(error.absolute_path))), None)


def parse_changes(raw: bytes, tool: ToolSpec, customer: str) -> tuple[Change, ...]:
    """Return the changes a script asks for. Raises ValueError for a change that this tool may not make, or not for this
    customer."""
    if len(raw) > MAX_CHANGE_BYTES:
        raise ValueError("the list of changes is too long")
    try:
        changes = _CHANGES.validate_json(raw)
    except ValidationError as error:
        raise ValueError("the list of changes cannot be read") from error
    if len(changes) > MAX_CHANGES:
        raise ValueError("too many changes")
    targets = [(change.book, change.key) for change in changes]
    if len(set(targets)) != len(targets):
        raise ValueError("a row is changed twice")
    for change in changes:
        _require_allowed(change, tool, customer)
    return tuple(changes)


def fill(template: str, args: Mapping[str, object]) -> str:
    """Return the template with `{name}` replaced by the argument's plain text; a missing one is left out."""
    return " ".join(_SLOT.sub(lambda slot: _plain(args.get(slot[1], "")), template).split())


def undo_args(tool: ToolSpec, args: Mapping[str, object], answer: Mapping[str, object]) -> dict[str, object] | None:
    """Return the arguments of the tool's declared inverse for one call of it; None when it has none, or when the call
    or its answer lacks a value that the inverse needs."""
    if tool.undo is None or not tool.reversible:
        return None
    values = {name: _undo_value(value, args, answer) for name, value in tool.undo.args.items()}
    return None if any(value is None for value in values.values()) else values


def _undo_value(value: object, args: Mapping[str, object], answer: Mapping[str, object]) -> object:
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    if value.startswith("$answer."):
        return answer.get(value.removeprefix("$answer."))
    return args.get(value[1:])


def card_facts(
    tool: ToolSpec, args: Mapping[str, object], rows: Mapping[str, Sequence[Mapping[str, object]]]
) -> list[dict[str, str]]:
    """Return the lines of a card for this call: `{label, before?, after?, text?}`, the shapes of the approvals room.

    `rows` are the exported books of the customer.
    """
    return [fact for spec in tool.facts if (fact := _fact(spec.model_dump(), args, rows))]


def values_before(
    facts: Sequence[FactSpec], args: Mapping[str, object], rows: Mapping[str, Sequence[Mapping[str, object]]]
) -> dict[str, str]:
    """Return the stored values that arguments replace, by argument. Only facts whose new value is one argument as it is
    (`after: "{name}"`) count, and only where something is stored."""
    shown = [(fact, _fact(fact.model_dump(), args, rows)) for fact in facts]
    replaced = {name: fact["before"] for spec, fact in shown if (name := (spec.after or "")[1:-1]) in args}
    return {name: value for name, value in replaced.items() if value != NOT_ON_RECORD}


def _fact(
    spec: Mapping[str, Any], args: Mapping[str, Any], rows: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, str]:
    fact = {"label": str(spec["label"])}
    if spec["text"]:
        fact["text"] = fill(spec["text"], args)
    if spec["book"]:
        key = fill(spec["key"], args)
        row = next((row for row in rows.get(spec["book"], ()) if row["key"] == key), None)
        value = _plain(row["data"].get(spec["field"], "")) if row else ""
        value = spec["shown"].replace("{value}", value) if value and spec["shown"] else value
        fact["before" if spec["after"] else "text"] = value or NOT_ON_RECORD
    if spec["after"]:
        fact["after"] = fill(spec["after"], args)
    return fact


def _plain(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # Round only where nothing is lost: a person must read exactly what the approval binds.
        return f"{value:.2f}" if round(value, 2) == value else repr(value)
    return str(value) if isinstance(value, int) else canonical_json(value)


def _require_allowed(change: Change, tool: ToolSpec, customer: str) -> None:
    if change.book not in tool.writes:
        raise ValueError(f"{tool.name} may not write to {change.book}")
    if isinstance(change, CreateChange) and change.subject != customer:
        raise ValueError("a row for another customer")
    values = change.set if isinstance(change, SetChange) else change.create
    if not all(_is_storable(value) for value in values.values()):
        raise ValueError("a value that cannot be stored")


def _is_storable(value: object) -> bool:
    """True for plain JSON without what PostgreSQL cannot store."""
    if isinstance(value, str):
        return "\0" not in value and not re.search("[\ud800-\udfff]", value)
    if isinstance(value, Mapping):
        return all(_is_storable(key) and _is_storable(item) for key, item in value.items())
    if isinstance(value, list):
        return all(_is_storable(item) for item in value)
    return value is None or isinstance(value, bool | int | float)
