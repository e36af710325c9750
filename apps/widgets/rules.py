"""Decide which origins may frame and call the widget, and build the frame's Content-Security-Policy. Pure.

An origin is `scheme://host[:port]`, exactly as browsers send it; entries in any other form allow nothing. The widget's
views, the session endpoint and the widget socket all use these rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from apps.tenants.rules import as_origin

_KEY = re.compile(r"[a-z0-9][a-z0-9-]{2,62}")


def is_key(text: str) -> bool:
    """Whether `text` has the form of a deployment's public key. Anything else is not looked up."""
    return _KEY.fullmatch(text) is not None


def origins(listed: Iterable[object]) -> tuple[str, ...]:
    """The valid origins of a deployment's list, without duplicates, in its order."""
    return tuple(dict.fromkeys(origin for origin in map(as_origin, listed) if origin))


def origin_allowed(origin: str | None, *, host: str, listed: Iterable[object]) -> bool:
    """Whether a request from `origin` may talk to a deployment served at `host` (the request's own Host header).

    Allowed are the platform's own pages (the widget's frame is one) and the listed websites. A request without an
    Origin does not come from a browser page that could be tricked; there the token alone decides. "null" (a sandboxed
    page, a file) is a foreign site.
    """
    if origin is None:
        return True
    known = as_origin(origin)
    return bool(known) and (known in origins(listed) or urlsplit(known).netloc == _without_default_port(host, known))


def _without_default_port(host: str, origin: str) -> str:
    return urlsplit(as_origin(f"{urlsplit(origin).scheme}://{host}")).netloc


def frame_ancestors(listed: Iterable[object] | None) -> Sequence[str]:
    """The frame ancestors of a deployment: the platform itself and the listed websites; none without a deployment."""
    return ("'none'",) if listed is None else ("'self'", *origins(listed))


def frame_policy(listed: Iterable[object] | None, *, host: str) -> str:
    """The frame document's Content-Security-Policy: own modules, stylesheet and socket, and its frame ancestors."""
    sockets = " ".join(("'self'", *(f"{scheme}://{host}" for scheme in ("ws", "wss") if as_origin(f"http://{host}"))))
    directives = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' blob:",
        "font-src": "'self'",
        "connect-src": sockets,
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": " ".join(frame_ancestors(listed)),
    }
    return "; ".join(f"{name} {value}" for name, value in directives.items())
