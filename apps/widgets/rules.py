"""Which site may open which door? Decided from values: origins, frame ancestors, the frame's content policy.

An origin is `scheme://host[:port]`, exact, as browsers send it; what is listed in any other form opens nothing.
Asked by the widget's views, by the session endpoint and by the widget socket, so that all three give one answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

from apps.tenants.rules import as_origin

_KEY = re.compile(r"[a-z0-9][a-z0-9-]{2,62}")


def is_key(text: str) -> bool:
    """Whether `text` has the shape of a deployment's public key; nothing else is worth a look into the database."""
    return _KEY.fullmatch(text) is not None


def origins(listed: Iterable[Any]) -> tuple[str, ...]:
    """The usable origins of a deployment's list, once each, in its order."""
    return tuple(dict.fromkeys(origin for origin in map(as_origin, listed) if origin))


def origin_allowed(origin: str | None, *, host: str, listed: Iterable[Any]) -> bool:
    """Whether a request from `origin` may talk to a deployment served at `host` (the request's own Host header).

    The platform's own pages may (the widget's frame is one), and the listed sites. No Origin means no browser whose
    visitor could be deceived: there the token alone decides. "null" (a sandboxed page, a file) is a foreign site.
    """
    if origin is None:
        return True
    known = as_origin(origin)
    return bool(known) and (known in origins(listed) or urlsplit(known).netloc == _without_default_port(host, known))


def _without_default_port(host: str, origin: str) -> str:
    return urlsplit(as_origin(f"{urlsplit(origin).scheme}://{host}")).netloc


def frame_ancestors(listed: Iterable[Any] | None) -> Sequence[str]:
    """Who may frame a deployment: the platform itself and the listed sites; nobody where there is no deployment."""
    return ("'none'",) if listed is None else ("'self'", *origins(listed))


def frame_policy(listed: Iterable[Any] | None, *, host: str) -> str:
    """The frame document's Content-Security-Policy: own modules, own stylesheet, own socket, and its ancestors."""
    sockets = " ".join(("'self'", *(f"{scheme}://{host}" for scheme in ("ws", "wss") if as_origin(f"http://{host}"))))
    directives = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "font-src": "'self'",
        "connect-src": sockets,
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": " ".join(frame_ancestors(listed)),
    }
    return "; ".join(f"{name} {value}" for name, value in directives.items())
