"""Who changes what a chatbot's visitors see beside talking, and what is written down about it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.audit.enums import AuditEvent
from apps.visitors import offers
from kernel.canonical import sha256_hex
from kernel.tenancy import tenant_scope
from tests.console.test_studio_settings import FILLED, address, now_of, press, saved, written
from tests.factories.console import browser
from tests.factories.visitors import ask, offer

QUESTION = {"q0_kind": "choice", "q0_label": "About", "q0_required": "on", "q0_choices": "A claim\nA policy\nA claim"}


def shown(place: Any) -> Any:
    return Client().get(f"/api/v1/widget/{place.public_key}/offers").json()


def page_of(user: Any, place: Any) -> str:
    return str(browser(user).get(address("console-studio", place)).content.decode())


def test_offers_are_saved(owner: Any, deployment: Any) -> None:
    saved(owner, deployment, pictures="on", file_megabytes="3", conversations="on", rating="thumbs")
    told = shown(deployment)
    assert told["files"]["most_bytes"] == 3 * 1024 * 1024
    assert told["conversations"] is True
    assert told["rating"] == "thumbs"


def test_change_of_an_offer_is_written_down_with_before_and_after(tenant: Any, owner: Any, deployment: Any) -> None:
    offer(deployment, rating="stars")
    saved(owner, deployment, rating="thumbs", pdfs="on")
    assert written(tenant, AuditEvent.OFFERS_CHANGED)[1:] == [
        {"changed": {"pdfs": [False, True], "rating": ["stars", "thumbs"]}}
    ]


def test_saving_twice_writes_offers_once(tenant: Any, owner: Any, deployment: Any) -> None:
    for _ in range(2):
        saved(owner, deployment, pdfs="on", **QUESTION)
    assert len(written(tenant, AuditEvent.OFFERS_CHANGED)) == 2


def test_form_shows_what_is_offered(owner: Any, deployment: Any) -> None:
    offer(deployment, consent_text="We keep it for a year.", consent_version="2026-03")
    ask(deployment, {"kind": "choice", "label": "About", "required": True, "choices": ["A claim", "A policy"]})
    page = page_of(owner, deployment)
    assert all(words in page for words in ("We keep it for a year.", 'value="2026-03"', "A claim\nA policy"))


def test_questions_are_asked_in_their_order(owner: Any, deployment: Any) -> None:
    saved(owner, deployment, **QUESTION, q5_kind="email", q5_label="Your address")
    about, email = ({**each, "id": ""} for each in shown(deployment)["form"])
    assert about == {"id": "", "kind": "choice", "label": "About", "required": True, "choices": ["A claim", "A policy"]}
    assert email == {"id": "", "kind": "email", "label": "Your address", "required": False}


def test_question_that_is_emptied_is_asked_no_more(owner: Any, deployment: Any) -> None:
    saved(owner, deployment, **QUESTION)
    saved(owner, deployment)
    assert shown(deployment)["form"] == []


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ({"file_megabytes": "26"}, "file_megabytes"),
        ({"files_each": "0"}, "files_each"),
        ({"consent_text": "We keep it."}, "consent_version"),
        ({"consent_link": "javascript:alert(1)"}, "consent_link"),
        ({"consent_text": "We keep it.", "consent_version": "v 1"}, "consent_version"),
        ({"rating": "hearts"}, "rating"),
        ({"q3_label": "Who are you?"}, "q3_kind"),
        ({"q3_kind": "text"}, "q3_label"),
        ({"q3_kind": "choice", "q3_label": "About"}, "q3_choices"),
        ({"q3_kind": "text", "q3_label": "About", "q3_choices": "A"}, "q3_choices"),
        ({"launcher": "<b>Ask</b>"}, "launcher"),
        ({"launcher": "x" * 41}, "launcher"),
        ({"launcher": "Ask\u202eus"}, "launcher"),
        ({"placement": "everywhere"}, "placement"),
        ({"languages": "tlh"}, "languages"),
        ({"languages": ["de", "fr"], "first_language": "es"}, "first_language"),
        ({"font": "x; } body {"}, "font"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_saved(
    tenant: Any, owner: Any, deployment: Any, fields: dict[str, Any], at: str
) -> None:
    response = saved(owner, deployment, pictures="on", consent_link=fields.pop("consent_link", ""), **fields)
    page = response.content.decode()
    assert response.status_code == 422
    assert f'id="id_{at}_error"' in page
    assert 'value="Help desk"' in page
    assert "checked" in page.partition('name="pictures"')[2].partition(">")[0]
    assert now_of(tenant, deployment).title == deployment.title
    assert shown(deployment)["files"] is None


def test_what_was_typed_wrongly_is_kept(owner: Any, deployment: Any) -> None:
    page = saved(owner, deployment, launcher="<b>Ask</b>", q3_label="Who are you?").content.decode()
    assert 'value="&lt;b&gt;Ask&lt;/b&gt;"' in page
    assert 'value="Who are you?"' in page


def test_fold_with_something_wrong_stands_open(owner: Any, deployment: Any) -> None:
    page = saved(owner, deployment, consent_version="v1").content.decode()
    assert "<details open><summary><h2>Consent" in page


def test_languages_are_saved_with_the_first_in_front(tenant: Any, owner: Any, deployment: Any) -> None:
    saved(owner, deployment, languages=["en", "de", "ar"], first_language="de")
    assert now_of(tenant, deployment).languages == ["de", "en", "ar"]


def test_first_language_alone_keeps_the_others(tenant: Any, owner: Any, deployment: Any) -> None:
    saved(owner, deployment, first_language="fr")
    assert now_of(tenant, deployment).languages == ["fr", "en", "de", "es", "nl", "ar"]


def test_change_of_languages_and_look_is_written_down_with_before_and_after(
    tenant: Any, owner: Any, deployment: Any
) -> None:
    saved(owner, deployment, languages=["de"], launcher="Frag uns", placement="inline")
    (entry,) = written(tenant, AuditEvent.DEPLOYMENT_CHANGED)
    assert entry["before"]["languages"] == []
    assert entry["after"]["languages"] == ["de"]
    assert entry["before"]["theme"] == {}
    assert entry["after"]["theme"]["placement"] == "inline"
    assert entry["after"]["theme"]["launcher"] == sha256_hex("Frag uns")[:16]


def test_font_and_hours_with_a_break_are_saved_and_written_down(tenant: Any, owner: Any, deployment: Any) -> None:
    saved(owner, deployment, font="Inter, 'Open Sans'", hours_mon="09:00-12:00, 13:00-17:00")
    (entry,) = written(tenant, AuditEvent.DEPLOYMENT_CHANGED)
    assert entry["after"]["opening_hours"]["mon"] == "09:00-12:00+13:00-17:00"
    assert now_of(tenant, deployment).theme["font"] == "Inter, 'Open Sans'"


def test_widget_is_told_languages_and_look(owner: Any, deployment: Any) -> None:
    saved(owner, deployment, languages=["de"], launcher="Frag uns")
    told = Client().get(reverse("widget-appearance", args=[deployment.public_key])).json()
    assert told["languages"] == ["de"]
    assert told["theme"]["launcher"] == "Frag uns"


def test_line_of_an_inline_chat_brings_its_place_along(owner: Any, deployment: Any) -> None:
    saved(owner, deployment, placement="inline")
    page = browser(owner).get(address("console-install", deployment)).content.decode()
    assert "&lt;div id=&quot;silas-chat&quot;" in page
    assert "data-inline=&quot;#silas-chat&quot;" in page
    assert "Copy for WordPress" in page
    assert "Copy for Wix" not in page


def test_second_one_like_the_first_offers_the_same(tenant: Any, owner: Any, deployment: Any) -> None:
    saved(owner, deployment, pdfs="on", languages=["de"], **QUESTION)
    press(owner, "console-studio-new", deployment, title="Shop", like=str(deployment.pk))
    with tenant_scope(tenant):
        made = type(deployment).objects.exclude(pk=deployment.pk).get()
        assert offers.offers_of(made.pk).pdfs is True
        assert made.languages == ["de"]
        assert [row.label for row in offers.questions_of(made.pk)] == ["About"]


def test_member_without_the_role_changes_no_offer(agent: Any, deployment: Any) -> None:
    press(agent, "console-studio", deployment, **FILLED, pdfs="on")
    assert shown(deployment)["files"] is None
