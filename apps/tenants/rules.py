"""Rules about roles, deployment settings, origins and keys. Pure.

Functions called `*_problem` return a sentence for the person who entered the value, or an empty string.
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

from apps.tenants.enums import Capability, IdentityAlgorithm, KeyScope, Role
from apps.tenants.hours import hours_problem
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import LANGUAGES, gettext, gettext_lazy
from kernel.timezones import timezone_error

# Which roles have which capability; the only such table. Used by the console, the REST API and the administration.
_ALL_ROLES = (Role.OWNER, Role.APPROVER, Role.AGENT, Role.VIEWER)
ROLES_WITH: Mapping[Capability, tuple[Role, ...]] = {
    Capability.LOOK: _ALL_ROLES,
    Capability.ANSWER: (Role.OWNER, Role.APPROVER, Role.AGENT),
    Capability.DECIDE: (Role.OWNER, Role.APPROVER),
    Capability.ADMINISTER: (Role.OWNER,),
    Capability.MANAGE_MEMBERS: (Role.OWNER,),
    Capability.MANAGE_API_KEYS: (Role.OWNER,),
    Capability.MANAGE_LOGIN: (Role.OWNER,),
}
LAST_OWNER = gettext_lazy("A company needs at least one owner. Make another member an owner first.")
# Key of the login session for the tenant that is open.
TENANT_IN_SESSION = "console_tenant"
MODEL_ROLES = ("proxy", "planner", "executor")
# Without a scorer, rules alone decide what is dropped from a full context window.
OPTIONAL_ROLES = ("scorer",)
MOST_SUGGESTIONS = 6
LONGEST_SUGGESTION = 80
SHORTEST_RSA = 2048
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\]")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_API_KEY = re.compile(r"sk_[A-Za-z0-9_-]{43}")
_ACCESS_TOKEN = re.compile(r"oat_[A-Za-z0-9_-]{43}")
MOST_REDIRECTS, LONGEST_REDIRECT = 10, 500
# Scopes that no app gets: deciding, secrets, and giving rights to others or to itself.
_NEVER_OF_APPS = frozenset(
    {
        KeyScope.SAFETY_AGENT,
        KeyScope.SAFETY_CONFIRM,
        KeyScope.SESSIONS_SECRETS,
        KeyScope.CARDS_DECIDE,
        KeyScope.MEMBERS_WRITE,
        KeyScope.API_KEYS_READ,
        KeyScope.API_KEYS_WRITE,
    }
)
APP_SCOPES = tuple(scope for scope in KeyScope if scope not in _NEVER_OF_APPS)
# The most that an app gets which registered itself: what the tools of MCP servers read.
SELF_REGISTERED_SCOPES = (KeyScope.CARDS_READ, KeyScope.KNOWLEDGE_READ, KeyScope.SESSIONS_READ)
# Keys and values of a theme. The widget ignores anything else, so anything else is refused as a mistake.
_THEME = {
    "accent": re.compile(r"#[0-9a-fA-F]{6}"),
    "mode": re.compile(r"light|dark|auto"),
    "position": re.compile(r"left|right"),
    "font": re.compile(r"[\w\s\"',.-]{1,200}"),
    "launcher": re.compile(r"(?!\s)[^\x00-\x1f\x7f\u2028-\u202e\u2066-\u2069<>]{1,40}(?<!\s)"),
    "placement": re.compile(r"bubble|inline"),
    "home": re.compile(r"on|off"),
}
THEME_PARTS = tuple(_THEME)
_THEME_PROBLEMS = {
    "accent": gettext_lazy("{name} must be a colour such as #1f5f8b."),
    "mode": gettext_lazy("{name} must be light, dark or auto."),
    "position": gettext_lazy("{name} must be left or right."),
    "font": gettext_lazy("{name} must be a list of font names."),
    "launcher": gettext_lazy("{name} must be one line of at most 40 characters, without < and >."),
    "placement": gettext_lazy("{name} must be bubble or inline."),
    "home": gettext_lazy("{name} must be on or off."),
}


def roles_with(*allowed: Capability | Role) -> tuple[Role, ...]:
    """The roles that are named or have one of the named capabilities, in the order of `Role`."""
    roles = {role for item in allowed for role in (ROLES_WITH[item] if isinstance(item, Capability) else (item,))}
    return tuple(role for role in _ALL_ROLES if role in roles)


def is_api_key(text: str) -> bool:
    """Whether `text` has the form of an API key. Anything else is not looked up."""
    return _API_KEY.fullmatch(text) is not None


def is_access_token(text: str) -> bool:
    """Whether `text` has the form of an OAuth access token."""
    return _ACCESS_TOKEN.fullmatch(text) is not None


def redirects_problem(addresses: Collection[str]) -> str:
    """Redirect addresses are https, or http on this computer for programs that run there; without a fragment."""
    if len(addresses) > MOST_REDIRECTS:
        return gettext("At most {most} redirect addresses.").format(most=MOST_REDIRECTS)
    wrong = next((address for address in addresses if not _is_redirect(address)), None)
    if wrong is None:
        return ""
    return gettext(
        "{wrong} can't be a redirect address. Use https://, or http://127.0.0.1 for a local program."
    ).format(wrong=_shown(wrong))


def _is_redirect(address: str) -> bool:
    # Backslashes and control characters are read differently by browsers than here (open redirect).
    if not re.fullmatch(r"[\x21-\x7e]+", address) or len(address) > LONGEST_REDIRECT or "\\" in address:
        return False
    try:
        parts = urlsplit(address)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.username is not None or "#" in address or not _HOST.fullmatch(f"[{host}]" if ":" in host else host):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)


def is_registered_redirect(address: str, registered: Collection[str]) -> bool:
    """Whether the address is one of those registered, to the letter. The port of a program on this computer may differ,
    because its system chooses it (RFC 8252, 7.3)."""
    return address in registered or any(_differs_in_port(address, known) for known in registered)


def _differs_in_port(address: str, known: str) -> bool:
    parts = urlsplit(known)
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
        return False
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    # Compared as text but for the port, since a parser could call two different addresses equal.
    start, rest = f"http://{host}", known[len(f"http://{parts.netloc}") :]
    return re.fullmatch(rf"{re.escape(start)}:[0-9]{{1,5}}{re.escape(rest)}", address) is not None


def as_origin(text: Any) -> str:
    """Normalise `text` to the origin that browsers send (lower case, no default port); empty if it is not an origin.

    The result is safe to embed in a Content-Security-Policy: it cannot end a directive or add one.
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


def typed_origins(text: str) -> list[str]:
    """Return the origins of the addresses that a person typed, one per line.

    A path is left out. Without a scheme, an address of this computer is http and any other https. A line that is no
    address is returned as typed, so that `origins_problem` names it.
    """
    return list(dict.fromkeys(_typed_origin(line.strip()) for line in text.splitlines() if line.strip()))


def _typed_origin(typed: str) -> str:
    before, _, after = typed.partition("://")
    scheme, rest = ("", typed) if re.search(r"[/?#]", before) or not after else (before, after)
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if host.endswith(":"):  # a mistyped scheme, such as http:/example.com
        return typed
    scheme = scheme or ("http" if _is_exact_origin(as_origin(f"http://{host}")) else "https")
    return as_origin(f"{scheme}://{host}") or typed


def deployment_problems(fields: Mapping[str, object], *, knows_model: Callable[[str], bool]) -> dict[str, str]:
    """Problems of the given deployment settings, by field."""
    checks: dict[str, Callable[[Any], str]] = {
        "allowed_origins": origins_problem,
        "theme": theme_problem,
        "suggestions": suggestions_problem,
        "languages": languages_problem,
        "opening_hours": hours_problem,
        "timezone": timezone_error,
        "model_names": lambda names: models_problem(names, knows_model=knows_model),
    }
    problems = {name: check(fields[name]) for name, check in checks.items() if name in fields}
    return {name: problem for name, problem in problems.items() if problem}


def origins_problem(listed: object) -> str:
    """The value must be a list of exact origins: https, or http on localhost."""
    if not isinstance(listed, list):
        return gettext('Give a list, such as ["https://www.example.com"].')
    wrong = [item for item in listed if not _is_exact_origin(item)]
    return (
        gettext("{wrong} is not an exact origin, such as https://www.example.com.").format(wrong=_shown(wrong[0]))
        if wrong
        else ""
    )


def _is_exact_origin(text: object) -> bool:
    if not isinstance(text, str) or as_origin(text) != text:
        return False
    parts = urlsplit(text)
    return parts.scheme == "https" or parts.hostname in _LOOPBACK


def theme_problem(theme: object) -> str:
    if not isinstance(theme, dict):
        return gettext('Give an object, such as {"accent": "#1f5f8b"}.')
    return next(iter(theme_problems(theme).values()), "")


def theme_problems(theme: Mapping[str, object]) -> dict[str, str]:
    """Problems of a theme, by key."""
    problems = {}
    for name, value in theme.items():
        if name not in _THEME:
            problems[name] = gettext("{name} is not part of a theme. Use {listed}.").format(
                name=_shown(name), listed=", ".join(_THEME)
            )
        elif not isinstance(value, str) or not _THEME[name].fullmatch(value):
            problems[name] = _THEME_PROBLEMS[name].format(name=name)
    return problems


def suggestions_problem(listed: object) -> str:
    if not isinstance(listed, list) or not all(isinstance(item, str) and item.strip() for item in listed):
        return gettext('Give a list of texts, such as ["Where is my order?"].')
    if len(listed) > MOST_SUGGESTIONS or any(len(item) > LONGEST_SUGGESTION for item in listed):
        return gettext("At most {most_suggestions} suggestions of {longest_suggestion} characters each.").format(
            most_suggestions=MOST_SUGGESTIONS, longest_suggestion=LONGEST_SUGGESTION
        )
    return ""


def languages_problem(listed: object) -> str:
    """The value must list some of `LANGUAGES`, each once; an empty list means all."""
    if not isinstance(listed, list) or not all(isinstance(item, str) and item in LANGUAGES for item in listed):
        return gettext("Give a list of languages of the widget: {listed}.").format(listed=", ".join(LANGUAGES))
    return "" if len(set(listed)) == len(listed) else gettext('Give each language once, such as ["en", "de"].')


def models_problem(names: object, *, knows_model: Callable[[str], bool]) -> str:
    """The value must name a known model for each of `MODEL_ROLES`, and may name one for `OPTIONAL_ROLES`."""
    if not isinstance(names, dict) or set(names) - set(OPTIONAL_ROLES) != set(MODEL_ROLES):
        return gettext("Name a model for each of {listed}, such as builtin:grounded.").format(
            listed=", ".join(MODEL_ROLES)
        )
    wrong = [name for name in names.values() if not (isinstance(name, str) and knows_model(name))]
    return (
        gettext("{wrong} is not a known model, such as builtin:grounded or openai:NAME.").format(wrong=_shown(wrong[0]))
        if wrong
        else ""
    )


def identity_key_problem(algorithm: str, public_key: str) -> str:
    """HS256 secrets are generated here; other algorithms need a public key, and no other kind of PEM."""
    if algorithm == IdentityAlgorithm.HS256:
        return gettext("The HS256 secret is generated here. Leave this empty.") if public_key.strip() else ""
    # Before it is parsed: a private key must not be stored, and its owner has to know that it is exposed.
    if "PRIVATE KEY" in public_key:
        return gettext(
            "This is a private key, which is now exposed. Create a new key pair and enter only its public key."
        )
    try:
        key = load_pem_public_key(public_key.strip().encode())
    except (ValueError, UnsupportedAlgorithm):
        return gettext("Enter the public key as PEM, starting with -----BEGIN PUBLIC KEY-----.")
    return (
        ""
        if _is_key_for(algorithm, key)
        else gettext("This key can't be used with {algorithm}.").format(algorithm=algorithm)
    )


def _is_key_for(algorithm: str, key: object) -> bool:
    match algorithm:
        case IdentityAlgorithm.RS256:
            return isinstance(key, RSAPublicKey) and key.key_size >= SHORTEST_RSA
        case IdentityAlgorithm.ES256:
            return isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)
        case IdentityAlgorithm.EDDSA:
            return isinstance(key, Ed25519PublicKey)
    return False


def _shown(value: object) -> str:
    return str(value)[:80]


def forbidden_role(roles: Collection[Role]) -> SilasError:
    """The 403 error that names the roles which are required."""
    names = [f"an {role.label.lower()}" if role.label[0] in "AEIOU" else f"a {role.label.lower()}" for role in roles]
    required = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return SilasError(
        ErrorCode.FORBIDDEN_ROLE,
        gettext("You don't have permission to do this. It requires {required}.").format(required=required),
        status=403,
    )
