"""Decide whether the platform may call an address that a person typed.

Public addresses need TLS. A private one is refused unless the operator names its host and port in
`SILAS_EGRESS_PRIVATE`.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings

from kernel.http.addresses import host_of, is_public_url
from kernel.language import gettext

_SCHEMES = ("http", "https")


def address_problem(url: str) -> str:
    """What is wrong with an address that was typed, or ""."""
    if is_allowed_private(url) or is_public_url(url, schemes=("https",)):
        return ""
    if is_public_url(url, schemes=("http",)):
        return gettext("The address must start with https.")
    place = _place(url)
    if not place:
        return gettext("This isn't an address. Example: https://llm.example.com/v1")
    message = gettext("This isn't a public address. The operator can allow it with SILAS_EGRESS_PRIVATE={place}.")
    return message.format(place=place)


def is_allowed_private(url: str) -> bool:
    """True when the operator allows this host and port of the private network."""
    return _place(url) in settings.EGRESS_PRIVATE


def _place(url: str) -> str:
    """The host and port of an address; "" for anything else."""
    host = host_of(url, schemes=_SCHEMES)
    if not host:
        return ""
    parts = urlsplit(url)
    return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
