"""Requests to the automation pages as a member: view, post, fill in."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from tests.factories.autonomy import House
from tests.factories.console import browser

SAID = {
    "name": "Nightly look",
    "playbook": "",
    "prompt": "Look at returns",
    "route": "silent",
    "priority": "5",
    "max_attempts": "3",
    "cost_usd": "0.25",
    "when-kind": "manual",
}


def text(user: Any, name: str, /, *args: Any, **query: Any) -> str:
    return str(browser(user).get(reverse(name, args=args), query).content.decode())


def post(user: Any, name: str, /, *args: Any, **said: Any) -> Any:
    return browser(user).post(reverse(name, args=args), said)


def said(house: House, **more: Any) -> dict[str, Any]:
    return {**SAID, "deployment": str(house.deployment.pk), **more}
