"""Detect chat markup inside a text: turns, roles and tags that only an attacker writes. Pure.

Each pattern is bounded and begins at signs that are rare. Called by `catalogue`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from apps.gates.detectors.findings import Detection, Span, any_of, without_overlap

# What sort of speaker a line begins with.
_SYSTEM = "system|systeme|système|sistema|systeem|系统|システム|admin|administrator|developer"
_ASSISTANT = "assistant|assistent|asistente|assistente|ai|bot|chatbot|助手|アシスタント"
_USER = "user|human|benutzer|nutzer|utilisateur|usuario|usuário|utente|gebruiker|用户|ユーザー"
_TURN = re.compile(
    rf"(?:^|\n)[ \t>*#-]{{0,8}}+(?:(?P<system>{_SYSTEM})|(?P<assistant>{_ASSISTANT})|(?P<user>{_USER}))"
    r"[ \t*]{0,3}+[:\uff1a]",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"<(?:/?+(?:system|information|important|instructions?+|assistant|user|admin|tool_result|function_results?+)"
    r"[ >]|\|[a-z_]{2,24}+\|>)|\[/?+(?:INST|SYS|SYSTEM|ASSISTANT|USER)\]|<</?+SYS>>",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\#{2,4}+ ?+(?:system|instructions?+|new instructions?+|anweisung(?:en)?+|instrucci[oó]n(?:es)?+|istruzion[ei]"
    r"|instruç(?:ão|ões)|instructies?+|consignes?+|指令|指示)",
    re.IGNORECASE,
)
_END = re.compile(
    r"[\[=<-]{2,8}+ ?+(?:/|end|ende|fin|fine|fim|einde|begin|beginn|start) ?+(?:of|der|du|de|dell|da|van|del)?+"
    r"[^\]\n=>-]{0,40}+[\]=>-]{2}",
    re.IGNORECASE,
)
_OVER = re.compile(r"\[\[[^\]\n]{0,20}+(?:结束|終わり)")


def detect_roles(text: str, *, sure: float) -> Detection:
    """`sure`: how sure one such mark makes us."""
    found = list(_marks(text))
    return Detection(any_of([sure] * min(2, len({kind for kind, _ in found}))), without_overlap(s for _, s in found))


def _marks(text: str) -> Iterator[tuple[str, Span]]:
    if ":" in text or "\uff1a" in text:
        turns = {match.lastgroup: match for match in _TURN.finditer(text)}
        if "system" in turns:
            yield "system", Span(*turns["system"].span(), "role")
        if "assistant" in turns and "user" in turns:
            yield "turns", Span(*turns["user"].span(), "role")
    for kind, pattern in (("tag", _TAG), ("order", _ORDER), ("end", _END), ("end", _OVER)):
        match = pattern.search(text)
        if match:
            yield kind, Span(*match.span(), "role")
