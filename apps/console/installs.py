"""The websites on which a chatbot is installed, for the pages that watch for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest

from apps.tenants.install_pings import last_pings
from apps.tenants.models import Deployment


@dataclass(frozen=True)
class Installs:
    """The allowed origins with the time of their last load, as `_installed.html` shows them."""

    origins: list[tuple[str, datetime | None]]

    @property
    def detected(self) -> int:
        return sum(at is not None for _, at in self.origins)

    @property
    def watching(self) -> bool:
        return self.detected < len(self.origins)

    def are_shown_by(self, request: HttpRequest) -> bool:
        """Whether this is the request of a watching page that shows all of this already.

        Such a page is left as it is, so that screen readers announce only what is new.
        """
        return "HX-Request" in request.headers and request.GET.get("detected") == str(self.detected)


def installs_of(place: Deployment) -> Installs:
    """Call it inside a scope."""
    seen = last_pings(place)
    return Installs([(origin, seen.get(origin)) for origin in place.allowed_origins])
