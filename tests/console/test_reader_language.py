"""What the console's filters write in the language of the reader."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.template import Context, Template

from apps.connections.services.requests import NO_PERMISSION
from apps.console.labels import inline_label
from apps.console.templatetags.console import bar_width, thousands, typed
from kernel.language import LANGUAGES, in_language


@pytest.mark.parametrize("language", LANGUAGES)
def test_forms_and_drawings_have_a_decimal_point_in_every_language(language: str) -> None:
    template = Template("{% load console %}{{ price|typed }} {{ share|bar_width }}")
    with in_language(language):
        assert typed(Decimal("0.005000").normalize()) == "0.005"
        assert typed(Decimal("10.000000").normalize()) == "10"
        assert bar_width(0.456) == "45.6"
        assert template.render(Context({"price": Decimal("0.5"), "share": 0.456})) == "0.5 45.6"


def test_long_numbers_are_grouped_as_the_reader_groups_them() -> None:
    with in_language("en"):
        assert thousands(1234567) == "1,234,567"
    with in_language("de"):
        assert thousands(1234567) == "1.234.567"


def test_value_of_a_record_is_shown_as_it_is_stored() -> None:
    template = Template("{% load console %}{{ value|record_value }}")
    with in_language("de"):
        assert template.render(Context({"value": "No"})) == "No"
        assert template.render(Context({"value": "2 of 5 items"})) == "2 of 5 items"
        assert template.render(Context({"value": NO_PERMISSION})) != NO_PERMISSION


def test_a_label_within_a_sentence_keeps_its_capital_in_german_only() -> None:
    with in_language("en"):
        assert inline_label("Owner") == "owner"
    with in_language("fr"):
        assert inline_label("Propriétaire") == "propriétaire"
    with in_language("de"):
        assert inline_label("Inhaber") == "Inhaber"
