"""The filters of the list of contacts, read from the address of the page."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import QueryDict

from apps.contacts.enums import ContactSource
from apps.contacts.queries import MAX_SEARCH, ContactFilter
from kernel.language import gettext_lazy

STATES = (("verified", gettext_lazy("Verified")), ("unverified", gettext_lazy("Not verified")))
_NAMES = ("search", "state", "source")


class ListFilter:
    """Unknown values filter nothing."""

    def __init__(self, given: QueryDict) -> None:
        texts = {name: given.get(name, "").strip()[:MAX_SEARCH] for name in _NAMES}
        self.search = texts["search"]
        self.state = texts["state"] if texts["state"] in dict(STATES) else ""
        self.source = texts["source"] if texts["source"] in ContactSource.values else ""

    @property
    def is_active(self) -> bool:
        return bool(self._chosen())

    @property
    def query_string(self) -> str:
        """The filter as the end of an address, beginning with `?`."""
        return f"?{urlencode(self._chosen())}"

    def as_condition(self) -> ContactFilter:
        return ContactFilter(
            search=self.search,
            verified={"verified": True, "unverified": False}.get(self.state),
            source=ContactSource(self.source) if self.source else None,
        )

    def _chosen(self) -> dict[str, str]:
        return {name: value for name in _NAMES if (value := getattr(self, name))}
