"""Which settings of a deployment make sense, and what does an API key look like? Decided from values alone.

Asked wherever a deployment is written; the widget reads origins by the same rule. Each answer is a sentence for the
person who typed the value, or empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from apps.tenants.enums import Capability, IdentityAlgorithm, Role
from apps.tenants.hours import hours_problem
from kernel.errors import SilasError
from kernel.timezones import timezone_error

# Who may do what: the one table that the console, the REST API, the administration and the rooms ask.
_EVERYBODY = (Role.OWNER, Role.APPROVER, Role.AGENT, Role.VIEWER)
ROLES_WITH: Mapping[Capability, tuple[Role, ...]] = {
    Capability.LOOK: _EVERYBODY,
    Capability.ANSWER: (Role.OWNER, Role.APPROVER, Role.AGENT),
    Capability.DECIDE: (Role.OWNER, Role.APPROVER),
    Capability.ADMINISTER: (Role.OWNER,),
    Capability.MANAGE_MEMBERS: (Role.OWNER,),
    Capability.MANAGE_API_KEYS: (Role.OWNER,),
    Capability.MANAGE_LOGIN: (Role.OWNER,),
}
LAST_OWNER = "A tenant keeps at least one owner. Make somebody else an owner first."
FORBIDDEN_ROLE = "forbidden_role"
# Under which name a login session remembers which of a person's tenants is open.
TENANT_IN_SESSION = "console_tenant"
MODEL_ROLES = ("proxy", "planner", "executor")
# Without one the rules alone say what leaves a window that is too full.
OPTIONAL_ROLES = ("scorer",)
MOST_SUGGESTIONS = 6
LONGEST_SUGGESTION = 80
# What the widget itself speaks, each by its own name; its words are files of the same codes.
LANGUAGES = {"en": "English", "de": "Deutsch", "fr": "Français", "es": "Español", "ar": "العربية"}
SHORTEST_RSA = 2048
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\]")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_API_KEY = re.compile(r"sk_[A-Za-z0-9_-]{43}")
# What the widget's theme understands; it ignores the rest, so the rest is a mistake.
_THEME = {
    "accent": re.compile(r"#[0-9a-fA-F]{6}"),
    "mode": re.compile(r"light|dark|auto"),
    "position": re.compile(r"left|right"),
    "font": re.compile(r"[\w\s\"',.-]{1,200}"),
    "launcher": re.compile(r"(?!\s)[^\x00-\x1f\x7f\u2028-\u202e\u2066-\u2069<>]{1,40}(?<!\s)"),
    "placement": re.compile(r"bubble|inline"),
}
_THEME_FORMS = {
    "accent": "a colour such as #1f5f8b",
    "mode": "light, dark or auto",
    "position": "left or right",
    "font": "a list of font names",
    "launcher": "one line of at most 40 characters, without < and >",
    "placement": "bubble or inline",
}


def roles_with(*wanted: Capability | Role) -> tuple[Role, ...]:
    """The roles that have one of these capabilities, or are named themselves; in the order of the table."""
    found = {role for one in wanted for role in (ROLES_WITH[one] if isinstance(one, Capability) else (one,))}
    return tuple(role for role in _EVERYBODY if role in found)


def is_api_key(text: str) -> bool:
    """Whether `text` has the shape of an API key; nothing else is worth a look into the database."""
    return _API_KEY.fullmatch(text) is not None


def as_origin(text: Any) -> str:
    """`text` as browsers would send this origin (lower case, no default port), or an empty string if it is none.

    Nothing that is returned can end a directive or add one to a Content-Security-Policy.
    """
    try:
        parts = urlsplit(text.strip().lower())
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
    except (AttributeError, ValueError):
        return ""
    host = f"[{host}]" if ":" in host else host
    if parts.scheme not in _DEFAULT_PORTS or not _HOST.fullmatch(host) or parts.path not in ("", "/"):
        return ""
    if parts.username is not None or parts.query or parts.fragment:
        return ""
    suffix = "" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{suffix}"


def deployment_problems(fields: Mapping[str, Any], *, knows_model: Callable[[str], bool]) -> dict[str, str]:
    """What is wrong with those of a deployment's settings that are given, by field."""
    judges: dict[str, Callable[[Any], str]] = {
        "allowed_origins": origins_problem,
        "theme": theme_problem,
        "suggestions": suggestions_problem,
        "languages": languages_problem,
        "opening_hours": hours_problem,
        "timezone": timezone_error,
        "model_names": lambda names: models_problem(names, knows_model=knows_model),
    }
    told = {name: judge(fields[name]) for name, judge in judges.items() if name in fields}
    return {name: problem for name, problem in told.items() if problem}


def origins_problem(listed: Any) -> str:
    """A list of exact origins: https, or http on this machine only."""
    if not isinstance(listed, list):
        return 'Give a list, such as ["https://www.example.com"].'
    wrong = [one for one in listed if not _is_exact_origin(one)]
    return f"{_shown(wrong[0])} is not an exact origin, such as https://www.example.com." if wrong else ""


def _is_exact_origin(text: Any) -> bool:
    if not isinstance(text, str) or as_origin(text) != text:
        return False
    parts = urlsplit(text)
    return parts.scheme == "https" or parts.hostname in _LOOPBACK


def theme_problem(theme: Any) -> str:
    if not isinstance(theme, dict):
        return 'Give an object, such as {"accent": "#1f5f8b"}.'
    return next(iter(theme_problems(theme).values()), "")


def theme_problems(theme: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with a theme, by the name of its part."""
    problems = {}
    for name, value in theme.items():
        if name not in _THEME:
            problems[name] = f"{_shown(name)} is not part of a theme; {', '.join(_THEME)} are."
        elif not isinstance(value, str) or not _THEME[name].fullmatch(value):
            problems[name] = f"{name} must be {_THEME_FORMS[name]}."
    return problems


def suggestions_problem(listed: Any) -> str:
    if not isinstance(listed, list) or not all(isinstance(one, str) and one.strip() for one in listed):
        return 'Give a list of texts, such as ["Where is my order?"].'
    if len(listed) > MOST_SUGGESTIONS or any(len(one) > LONGEST_SUGGESTION for one in listed):
        return f"At most {MOST_SUGGESTIONS} suggestions of {LONGEST_SUGGESTION} characters each."
    return ""


def languages_problem(listed: Any) -> str:
    """Some of `LANGUAGES`, each once; none for all of them."""
    if not isinstance(listed, list) or not all(isinstance(one, str) and one in LANGUAGES for one in listed):
        return f"Give a list of what the widget speaks: {', '.join(LANGUAGES)}."
    return "" if len(set(listed)) == len(listed) else 'Give each language once, such as ["en", "de"].'


def models_problem(names: Any, *, knows_model: Callable[[str], bool]) -> str:
    """One known model for each role, one for `scorer` if it is wanted, and no other role."""
    if not isinstance(names, dict) or set(names) - set(OPTIONAL_ROLES) != set(MODEL_ROLES):
        return f"Name a model for each of {', '.join(MODEL_ROLES)}, such as builtin:grounded."
    wrong = [one for one in names.values() if not (isinstance(one, str) and knows_model(one))]
    return f"{_shown(wrong[0])} is not a known model, such as builtin:grounded or openai:NAME." if wrong else ""


def identity_key_problem(algorithm: str, public_key: str) -> str:
    """A shared secret is ours to make; of a pair we take the public half, and nothing else that a PEM may hold."""
    if algorithm == IdentityAlgorithm.HS256:
        return "An HS256 secret is made here: leave this empty." if public_key.strip() else ""
    if "PRIVATE KEY" in public_key:
        return "This is a private key. Keep it, treat it as lost, and give us the public half of a new one."
    try:
        key = load_pem_public_key(public_key.strip().encode())
    except (ValueError, UnsupportedAlgorithm):
        return "Give the public key as PEM, beginning with -----BEGIN PUBLIC KEY-----."
    return "" if _fits(algorithm, key) else f"This is no key for {algorithm}."


def _fits(algorithm: str, key: Any) -> bool:
    match algorithm:
        case IdentityAlgorithm.RS256:
            return isinstance(key, RSAPublicKey) and key.key_size >= SHORTEST_RSA
        case IdentityAlgorithm.ES256:
            return isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)
        case IdentityAlgorithm.EDDSA:
            return isinstance(key, Ed25519PublicKey)
    return False


def _shown(value: Any) -> str:
    return str(value)[:80]


def forbidden_role(roles: Collection[Role]) -> SilasError:
    """What somebody reads whose role does not reach: which one does."""
    named = [f"an {role.label.lower()}" if role.label[0] in "AEIOU" else f"a {role.label.lower()}" for role in roles]
    who = " or ".join(filter(None, (", ".join(named[:-1]), named[-1])))
    return SilasError(FORBIDDEN_ROLE, f"Your role does not allow this. It takes {who}.", status=403)
