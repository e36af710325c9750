"""HTTP client for outside servers that reaches one host (`kernel.http.client`).

Private addresses are refused unless the operator names host and port in `SILAS_EGRESS_PRIVATE`; only these may be
called without TLS. No redirect and nothing a server says leads to another host. At most `most` bytes of an answer are
read.
"""

from __future__ import annotations

import httpx2

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.http.allowed import address_problem, is_allowed_private
from kernel.http.client import open_client

MOST_BYTES = 2_000_000
_STEP_SECONDS = 30.0

# Sentences about addresses that cannot be called, for messages of the callers.
ADDRESS_ERRORS = {
    "address_inside": "This address is in a private network.",
    "address_refused": "This address doesn't lead to a public server.",
    "no_such_host": "There is no server with this name.",
}


def client_for(url: str, headers: dict[str, str], *, most: int = MOST_BYTES) -> httpx2.AsyncClient:
    """Return a client that reaches the host of `url` and no other. Raises `SilasError("address_refused")`."""
    if address_problem(url):
        raise SilasError(ErrorCode.ADDRESS_REFUSED, address_problem(url))
    return open_client(
        allow_private=is_allowed_private(url), max_bytes=most, step_seconds=_STEP_SECONDS, headers=headers, only=url
    )
