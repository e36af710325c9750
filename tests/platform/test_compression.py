"""What travels compressed, and what must not."""

from __future__ import annotations

import gzip
from typing import Any

from django.test import Client
from django.urls import reverse

from tests.factories.console import browser

PACKED = {"HTTP_ACCEPT_ENCODING": "gzip, br"}


def test_page_of_the_console_travels_compressed(owner: Any) -> None:
    answer = browser(owner).get(reverse("console-inbox"), **PACKED)
    assert answer["Content-Encoding"] == "gzip"
    assert b"</html>" in gzip.decompress(answer.content)


def test_embed_script_travels_compressed_and_is_the_same(database: None) -> None:
    answer = Client().get(reverse("widget-loader"), **PACKED)
    assert gzip.decompress(answer.content) == Client().get(reverse("widget-loader")).content


def test_secret_shown_after_a_press_travels_plain(owner: Any) -> None:
    answer = browser(owner).post(reverse("console-api-key-make"), {"name": "Importer"}, **PACKED)
    assert answer.status_code == 200
    assert answer.has_header("Content-Encoding") is False


def test_api_travels_plain(database: None) -> None:
    assert not Client().get(reverse("schema"), **PACKED).has_header("Content-Encoding")
