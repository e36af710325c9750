"""A typed client of the REST API of a silas_platform installation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from silas_client import types
from silas_client.operations import Operations
from silas_client.transport import ApiError

__all__ = ["ApiError", "Client", "types"]


class Client(Operations):
    """`Client("https://desk.example", "sk_…")`; see `Operations` for what it can do."""

    def pages(self, listing: Callable[..., Any], **query: Any) -> Iterator[Any]:
        """Every item of a list, page after page: `client.pages(client.cards_list, state="open")`."""
        before = ""
        while True:
            page = listing(**query, before=before)
            yield from next(value for value in page.values() if isinstance(value, list))
            before = page.get("next", "")
            if not before:
                return
