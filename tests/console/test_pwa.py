"""The console can be installed, and its offline page holds no data."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import reverse

from tests.factories.console import browser, make_card

FOLDER = Path(str(finders.find("console/manifest.json"))).parent
MANIFEST = json.loads((FOLDER / "manifest.json").read_text())


def _worker() -> Any:
    return Client().get(reverse("console-service-worker"))


def test_worker_reaches_the_console_and_no_further() -> None:
    response = _worker()
    assert response["Service-Worker-Allowed"] == "/console/"
    assert reverse("console-service-worker") == "/console/sw.js"


def test_worker_is_a_script_that_is_asked_for_anew_each_time() -> None:
    response = _worker()
    assert response["Content-Type"].startswith("text/javascript")
    assert "no-cache" in response["Cache-Control"]


def test_worker_keeps_only_what_holds_nobodys_data() -> None:
    script = _worker().content.decode()
    kept = re.findall(r'"(/[^"]*)"', script.partition("/* Alerts")[0])
    assert kept == ["/console/offline/", *(f"/static/console/{name}" for name in KEPT)]


KEPT = ("console.css", "inter-latin.woff2", "icon.svg")


@pytest.mark.parametrize("address", ["/console/sw.js", "/console/offline/"])
def test_answer_is_the_same_for_everybody(tenant: Any, owner: Any, address: str) -> None:
    make_card(tenant, intent="Refund the lamp")
    assert browser(owner).get(address).content == Client().get(address).content


def test_page_for_no_connection_leads_back(database: None) -> None:
    assert 'href="/console/"' in Client().get(reverse("console-offline")).content.decode()


def test_manifest_has_an_icon_for_every_shape() -> None:
    purposes = {(icon["type"], icon["purpose"]) for icon in MANIFEST["icons"]}
    assert purposes == {(kind, use) for kind in ("image/png", "image/svg+xml") for use in ("any", "maskable")}


@pytest.mark.parametrize(
    "icon", [one for one in MANIFEST["icons"] if one["src"].endswith("png")], ids=lambda i: i["src"]
)
def test_icon_is_as_large_as_the_manifest_says(icon: dict[str, str]) -> None:
    width, height = struct.unpack(">II", (FOLDER / icon["src"]).read_bytes()[16:24])
    assert f"{width}x{height}" == icon["sizes"]


@pytest.mark.parametrize("shortcut", MANIFEST["shortcuts"], ids=lambda one: one["name"])
def test_shortcut_leads_to_a_page(tenant: Any, viewer: Any, shortcut: dict[str, str]) -> None:
    assert browser(viewer).get(shortcut["url"]).status_code == 200
