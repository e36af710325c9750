"""Names, schemas, answers and proofs of outside tools, decided from texts and values alone.

Everything a server says is untrusted: a description that hides something, a schema that refers, recurs or never ends, a
pattern that takes for ever, an answer that contains markup or terminal commands.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from kernel.canonical import canonical_bytes, sha256_hex
from kernel.language import gettext
from kernel.unicode_safety import has_hidden_characters

PREFIX = "mcp:"
MOST_TOOLS = 200
DIGEST_CHARS = 16
LONGEST_DESCRIPTION, LONGEST_ALIAS = 2000, 60
MOST_SCHEMA_BYTES, MOST_NODES, DEEPEST = 20_000, 1000, 12
MOST_ANSWER_CHARS = 20_000
# Longer answers are cut before cleaning: the HTML parser's time grows with the square of the nesting depth.
MOST_READ_CHARS = 2 * MOST_ANSWER_CHARS
REDACTED = "[removed]"
_SERVER_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_./:-]{1,128}")
_MARKUP = re.compile(r"<[A-Za-z/!?]")
# ANSI sequences first, so that no half of one is left when the escape character goes.
_TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]")
# A hostile expression could run for ever in our process, so the server checks these itself.
_NOT_OURS = frozenset({"pattern", "patternProperties", "format", "contentEncoding", "contentMediaType"})
_SAID_ONLY = frozenset({"$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "examples"})
_REFUSED = frozenset({"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$vocabulary"})

# First words of built-in tools (`knowledge_search`, `goal_state`): an alias that looked like one could pass where an
# access level or a list of tools names it.
_RESERVED_WORDS = frozenset({"knowledge", "memory", "web", "read", "open", "new", "goal", "emit", "propose", "deliver"})


class BadSchema(ValueError):
    """A schema that cannot be used; the sentence says why."""


def name_problem(name: str) -> str:
    """Return what is wrong with a server's name, or ""."""
    if name.split("-")[0] in _RESERVED_WORDS:
        return gettext("Built-in tools start with this word. Choose another name.")
    if _SERVER_NAME.fullmatch(name) and len(name) <= 24:
        return ""
    return gettext("Use up to 24 lowercase letters, digits and single hyphens, starting with a letter.")


def seal_context(server_id: object) -> str:
    """Return what a server's secret is bound to when it is sealed."""
    return f"tool_server:{server_id}"


def descriptor_digest(description: Mapping[str, object]) -> str:
    """Return the digest of everything a server says about a tool that could mislead a model or a person."""
    return sha256_hex(dict(description))


def set_digest(tools: Mapping[str, str]) -> str:
    """Return the digest of the tools that are in use, by alias, each with the digest of its description."""
    return sha256_hex(dict(tools))


def reference(server: str, digest: str) -> str:
    return f"{PREFIX}{server}@{digest[:DIGEST_CHARS]}"


def split_reference(ref: str) -> tuple[str, str]:
    """Return (server, start of the digest); the digest is "" when what is in use now is meant."""
    name, _, digest = ref.removeprefix(PREFIX).partition("@")
    return name, digest


def is_reference(ref: str) -> bool:
    return ref.startswith(PREFIX)


def alias_of(server: str, tool: str, taken: Iterable[str] = ()) -> str:
    """Return the name under which models call the tool: the server's name before the tool's, so that no server can take
    the name of a skill's tool or of another server's."""
    plain = re.sub(r"[^a-z0-9]+", "_", tool.lower()).strip("_") or "tool"
    alias = f"{server.replace('-', '_')}_{plain}"[:LONGEST_ALIAS].rstrip("_")
    if alias not in set(taken):
        return alias
    mark = sha256_hex(f"{server}/{tool}")[:6]
    return f"{alias[: LONGEST_ALIAS - 7].rstrip('_')}_{mark}"


def problem_of(name: str, description: str, schema: object) -> str:
    """Return why a tool cannot be accepted as its server describes it; "" when it can."""
    if not _TOOL_NAME.fullmatch(name):
        return "its name is not a valid tool name"
    if len(description) > LONGEST_DESCRIPTION:
        return "its description is too long"
    if has_hidden_characters(description) or has_hidden_characters(schema):
        return "it contains invisible characters"
    try:
        closed_schema(schema)
    except BadSchema as problem:
        return str(problem)
    return ""


def closed_schema(schema: object) -> dict[str, object]:
    """Return the schema that arguments are validated against: its own references written out, patterns left to the
    server, no properties beside those it names. Raises `BadSchema`."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise BadSchema("its arguments are not an object")
    if len(_canonical(schema)) > MOST_SCHEMA_BYTES:
        raise BadSchema("the description of its arguments is too long")
    plain: dict[str, object] = _Expansion(schema).of(schema, 0, ())
    # An argument that no person has read about cannot be passed.
    plain["additionalProperties"] = False
    plain.setdefault("properties", {})
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(plain)
    except SchemaError:
        raise BadSchema("its arguments are not described by a JSON schema") from None
    return plain


def _canonical(schema: object) -> bytes:
    try:
        return canonical_bytes(schema)
    except (ValueError, RecursionError, TypeError):
        raise BadSchema("its arguments are not described by a JSON schema") from None


class _Expansion:
    """Writes local references out, within a number of nodes and a depth, so that a schema that grows or refers to
    itself ends."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root, self.nodes = root, 0

    def of(self, node: object, depth: int, through: tuple[str, ...]) -> Any:
        self.nodes += 1
        if self.nodes > MOST_NODES or depth > DEEPEST:
            raise BadSchema("the schema of its arguments is too complex")
        if isinstance(node, list):
            return [self.of(item, depth + 1, through) for item in node]
        return self._mapping(node, depth, through) if isinstance(node, Mapping) else node

    def _mapping(self, node: Mapping[str, Any], depth: int, through: tuple[str, ...]) -> dict[str, object]:
        if _REFUSED & node.keys():
            raise BadSchema("the schema of its arguments uses references that aren't supported")
        is_names = bool(through) and through[-1] == "properties"
        kept = {
            str(key): self.of(
                value, depth + 1, (*through, "properties" if key == "properties" and not is_names else "")
            )
            for key, value in node.items()
            if is_names or key not in _NOT_OURS | _SAID_ONLY | {"$ref"}
        }
        if is_names or "$ref" not in node:
            return kept
        ref = node["$ref"]
        if ref in through:
            raise BadSchema("the schema of its arguments refers to itself")
        return {**self._mapping(self._target(ref), depth + 1, (*through, ref, "")), **kept}

    def _target(self, ref: Any) -> Mapping[str, object]:
        if not isinstance(ref, str) or not re.fullmatch(r"#/(\$defs|definitions)/[A-Za-z0-9_.-]{1,100}", ref):
            raise BadSchema("the schema of its arguments refers to another document")
        _, where, name = ref.split("/")
        target = (self.root.get(where) or {}).get(name)
        if not isinstance(target, Mapping):
            raise BadSchema("the schema of its arguments refers to a missing definition")
        return target


def clean(text: str) -> str:
    """Return the first `MOST_READ_CHARS` of an outside text without terminal commands, markup and invisible
    characters."""
    import nh3

    plain = _TERMINAL.sub("", text[:MOST_READ_CHARS])
    # Unescaping can bring out further markup.
    for _ in range(3):
        if not _MARKUP.search(plain):
            break
        plain = html.unescape(nh3.clean(plain, tags=set()))
    plain = _MARKUP.sub("", plain)
    return "".join(char for char in plain if char in "\n\t" or not has_hidden_characters(char))


def one_line(text: str, most: int) -> str:
    """Return a server's words on one line, for a page, a card or a log."""
    plain = " ".join(clean(text[: 10 * most]).split())
    return plain if len(plain) <= most else f"{plain[:most]}…"


def clean_value(value: object, depth: int = 0) -> object:
    """Clean every text in a value; what is nested too deep is left out."""
    if depth > DEEPEST:
        return None
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): clean_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_value(item, depth + 1) for item in value]
    return value if value is None or isinstance(value, bool | int | float) else None


def redact(secret: str, text: str) -> str:
    """Return the text without the secret in its usual encodings: plain, backwards, base64, hex, or as in a URL."""
    # A short one would be cut out of ordinary words.
    if len(secret) < 6:
        return text
    for form in _encodings(secret):
        text = text.replace(form, REDACTED)
    return text


def _encodings(secret: str) -> tuple[str, ...]:
    raw = secret.encode()
    packed = (base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode())
    return (secret, secret[::-1], quote(secret, safe=""), *packed, *(text.rstrip("=") for text in packed), raw.hex())


def redact_value(secret: str, value: object) -> object:
    if isinstance(value, str):
        return redact(secret, value)
    if isinstance(value, Mapping):
        return {redact(secret, str(key)): redact_value(secret, item) for key, item in value.items()}
    return [redact_value(secret, item) for item in value] if isinstance(value, list) else value


def difference(before: Mapping[str, object], after: Mapping[str, object]) -> list[dict[str, str]]:
    """Return what changed between two descriptions of a tool: `{part, before, after}` for each part."""
    parts = ("title", "description", "schema", "annotations")
    pairs = ((part, before.get(part), after.get(part)) for part in parts)
    return [{"part": part, "before": _as_text(old), "after": _as_text(new)} for part, old, new in pairs if old != new]


def _as_text(part: object) -> str:
    return part if isinstance(part, str) else "" if part is None else canonical_bytes(part).decode()


_EXPECTED = frozenset({"equals", "contains", "regex", "output_lt", "output_gt"})


def proof_problem(proof: Mapping[str, Any], *, acting: Mapping[str, Any], reading: Mapping[str, Any]) -> str:
    """Return why this proves nothing of a tool with the closed schema `acting`, asked of one with `reading`; "" when it
    may. `{tool, args, expect}`: a value `"$name"` of `args` stands for an argument of the acting call."""
    args, expect = proof.get("args"), proof.get("expect")
    if set(proof) != {"tool", "args", "expect"} or not isinstance(args, Mapping) or not isinstance(expect, Mapping):
        return gettext("A check names a tool, its arguments and the expected answer.")
    if len(expect) != 1 or not expect.keys() <= _EXPECTED or next(iter(expect.values())) in ("", None):
        return gettext("Enter one thing that the answer must be or contain.")
    known, accepted = acting["properties"], reading["properties"]
    if not accepted.keys() >= args.keys() or not args.keys() >= set(reading.get("required") or ()):
        return gettext("Give the read-only tool all its required arguments, and no others.")
    if any(isinstance(value, str) and value.startswith("$") and value[1:] not in known for value in args.values()):
        return gettext("After $, use the name of an argument of the acting tool.")
    return ""


def proof_args(args: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of the reading tool after a call with `given`; values that were not given are left out."""
    values = {
        name: given.get(value[1:]) if isinstance(value, str) and value.startswith("$") else value
        for name, value in args.items()
    }
    return {name: value for name, value in values.items() if value is not None}


def strip_echo(text: str, given: Mapping[str, object]) -> str:
    """Return an answer without the words of the question: a server that repeats them has proved nothing."""
    # The longest first: a shorter one that is part of it would leave the rest.
    for words in sorted(set(_texts_in(given)), key=len, reverse=True):
        text = re.sub(re.escape(words), " ", text, flags=re.IGNORECASE)
    return text.strip()


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str) and value.strip():
        yield value.strip()
    elif isinstance(value, Mapping):
        yield from (text for item in value.values() for text in _texts_in(item))
    elif isinstance(value, list):
        yield from (text for item in value for text in _texts_in(item))
