"""From an installation without a company to a chatbot on a site: who may, what is kept, and what is refused."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.urls import reverse
from pydantic_ai import models

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.knowledge.models import Intake
from apps.tenants import first_run
from apps.tenants.enums import PictureKind
from apps.tenants.models import Deployment, FirstRun, Tenant, User
from apps.tenants.pictures import store_picture
from apps.tenants.queries import memberships_of
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.pictures import png
from tests.factories.tenants import make_deployment, make_member, make_tenant
from tests.fakes.openai_server import FakeOpenAI, Reply, serving_in_thread

SCREENS = ["console-begin-model", "console-begin-knowledge", "console-begin-sites", "console-begin-ready"]
TYPED = {"company": "Alder & Sons", "person": "Ada Alder", "email": "ada@alder.example", "password": "a-long-password"}
KEY = "sk-secret-of-the-house"


@pytest.fixture
def nobody(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no company were there: tests share one database, so only those of this test count."""
    begin = now()
    monkeypatch.setattr(first_run, "has_company", lambda: Tenant.objects.filter(created_at__gte=begin).exists())


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
    with serving_in_thread([Reply("Yes")]) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        yield fake


def setup(code: str = "") -> str:
    return reverse("console-setup", args=[code or first_run.setup_code(settings.SECRET_KEY)])


def typed(**fields: str) -> dict[str, str]:
    word = uuid4().hex[:8]
    return {**TYPED, "company": f"Alder & Sons {word}", "email": f"ada-{word}@alder.example", **fields}


def passkey_origin(tenant: Any) -> Deployment:
    with tenant_scope(tenant):
        found: Deployment = Deployment.objects.get()
        return found


def place_of_first(tenant: Any, other: Deployment) -> Deployment:
    with tenant_scope(tenant):
        found: Deployment = Deployment.objects.exclude(pk=other.pk).get()
        return found


def begun(owner: Any) -> Client:
    client = browser(owner)
    client.get(reverse("console-begin"))
    return client


# -- the first screen ----------------------------------------------------------------------------------------------


def test_setup_address_makes_account_and_company(nobody: None) -> None:
    client = Client()
    response = client.post(setup(), typed())
    assert response["Location"] == reverse("console-begin")
    assert client.get(reverse("console-begin"))["Location"] == reverse("console-begin-model")


@pytest.mark.parametrize("code", ["x", "0" * 40, "%00"])
def test_wrong_code_opens_nothing(nobody: None, code: str) -> None:
    assert Client().post(setup(code), typed()).status_code == 404


def test_setup_is_closed_once_there_is_a_company(tenant: Any) -> None:
    assert Client().get(setup()).status_code == 404
    assert Client().post(setup(), typed()).status_code == 404


def test_setup_link_is_not_printed_once_there_is_a_company(tenant: Any) -> None:
    with pytest.raises(CommandError, match="has a company already"):
        call_command("setup_link")


def test_form_that_comes_twice_makes_one_company(nobody: None) -> None:
    said = typed()
    answers = [Client().post(setup(), said).status_code for _ in range(2)]
    assert answers == [302, 404]


def test_of_two_at_once_one_makes_the_company(nobody: None) -> None:
    outcomes: list[str] = []

    def try_it() -> None:
        told = typed()
        try:
            first_run.create_first_company(first_run.NewCompany(told["company"], told["email"], "a-long-password"))
            outcomes.append("made")
        except SilasError as refusal:
            outcomes.append(refusal.code)
        finally:
            from django.db import connection

            connection.close()

    rivals = [threading.Thread(target=try_it) for _ in range(2)]
    for rival in rivals:
        rival.start()
    for rival in rivals:
        rival.join()
    assert sorted(outcomes) == ["already_set_up", "made"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("password", "short"), ("password", "password12"), ("email", "no address"), ("company", " ")],
)
def test_what_is_wrong_is_said_and_nothing_is_made(nobody: None, field: str, value: str) -> None:
    said = typed(**{field: value})
    assert Client().post(setup(), said).status_code == 422
    assert not User.objects.filter(email=said["email"]).exists()


def test_password_is_not_shown_again(nobody: None) -> None:
    page = Client().post(setup(), typed(email="no address")).content.decode()
    assert TYPED["password"] not in page


def test_unknown_time_zone_of_a_browser_does_no_harm(nobody: None) -> None:
    assert Client().post(setup(), typed(timezone="Moon/Tycho")).status_code == 302


def test_setup_without_csrf_token_is_refused(nobody: None) -> None:
    assert Client(enforce_csrf_checks=True).post(setup(), typed()).status_code == 403


def test_code_of_another_secret_is_another() -> None:
    assert first_run.setup_code("one") != first_run.setup_code("other")


# -- who may -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["approver", "agent", "viewer", "stranger"])
@pytest.mark.parametrize("name", ["console-begin", *SCREENS])
def test_screens_are_for_owners_only(tenant: Any, name: str, role: str, request: pytest.FixtureRequest) -> None:
    client = browser(request.getfixturevalue(role))
    assert client.get(reverse(name)).status_code == 403
    assert client.post(reverse(name)).status_code in (403, 405)


@pytest.mark.parametrize("name", SCREENS)
def test_screen_without_login_leads_to_it(tenant: Any, name: str) -> None:
    assert reverse("console-login") in browser().get(reverse(name))["Location"]


@pytest.mark.parametrize("name", SCREENS)
def test_press_without_csrf_token_is_refused(owner: Any, name: str) -> None:
    assert browser(owner, csrf=True).post(reverse(name), {"on": "1"}).status_code == 403


@pytest.mark.parametrize("name", SCREENS)
def test_screen_has_no_inline_script_or_style(owner: Any, name: str) -> None:
    page = browser(owner).get(reverse(name)).content.decode()
    assert not re.search(r"<style|style=|<script(?![^>]*\bsrc=)|\son\w+=|javascript:", page)


# -- the others ----------------------------------------------------------------------------------------------------


def test_console_leads_to_where_the_company_stopped(tenant: Any, owner: Any) -> None:
    client = begun(owner)
    client.post(reverse("console-begin-model"), {"kind": "builtin"})
    assert client.get(reverse("console"))["Location"] == reverse("console-begin")
    assert client.get(reverse("console-begin"))["Location"] == reverse("console-begin-knowledge")


def test_console_leads_elsewhere_once_it_is_done(tenant: Any, owner: Any) -> None:
    client = begun(owner)
    client.post(reverse("console-begin-ready"))
    assert client.get(reverse("console"))["Location"] == reverse("console-review")


@pytest.mark.parametrize("name", SCREENS)
def test_every_screen_stands_for_itself(tenant: Any, owner: Any, name: str) -> None:
    assert browser(owner).get(reverse(name)).status_code == 200


def test_company_that_has_a_chatbot_goes_on_with_it(tenant: Any, owner: Any, deployment: Any) -> None:
    browser(owner).get(reverse("console-begin"))
    with tenant_scope(tenant):
        assert FirstRun.objects.get().deployment_id == deployment.pk


def test_beginning_twice_makes_one_deployment(tenant: Any, owner: Any) -> None:
    begun(owner)
    begun(owner)
    assert passkey_origin(tenant).slug == "main"


def test_builtin_model_is_chosen_for_every_role(tenant: Any, owner: Any) -> None:
    begun(owner).post(reverse("console-begin-model"), {"kind": "builtin"})
    assert set(passkey_origin(tenant).model_names.values()) == {"builtin:grounded"}


def test_key_that_works_is_kept_sealed(tenant: Any, owner: Any, provider: FakeOpenAI) -> None:
    said = {"kind": "provider", "provider": "openai", "model": "small", "key": KEY}
    begun(owner).post(reverse("console-begin-model"), said)
    place = passkey_origin(tenant)
    assert place.model_names["proxy"] == "openai:small"
    assert place.keys.of("openai:small") == KEY
    assert len(provider.requests) == 1


def test_key_stands_in_no_row_and_no_audit_entry(
    tenant: Any, owner: Any, provider: FakeOpenAI, superuser_dsn: str
) -> None:
    said = {"kind": "provider", "provider": "openai", "model": "small", "key": KEY}
    begun(owner).post(reverse("console-begin-model"), said)
    with psycopg.connect(superuser_dsn) as insider:
        rows = insider.execute(
            "SELECT d::text FROM tenants_deployment d WHERE tenant_id = %s UNION ALL "
            "SELECT a::text FROM audit_auditentry a WHERE tenant_id = %s",
            [tenant.pk, tenant.pk],
        ).fetchall()
    assert rows
    assert not any(KEY in row for (row,) in rows)


def test_key_opens_for_its_own_deployment_only(tenant: Any, owner: Any, provider: FakeOpenAI) -> None:
    said = {"kind": "provider", "provider": "openai", "model": "small", "key": KEY}
    begun(owner).post(reverse("console-begin-model"), said)
    other = make_deployment(tenant, sealed_keys=passkey_origin(tenant).sealed_keys)
    assert place_of_first(tenant, other).keys.of("openai:small") == KEY
    assert other.keys.of("openai:small") is None


@pytest.mark.parametrize("status", [401, 429, 500])
def test_key_that_is_refused_is_not_kept(tenant: Any, owner: Any, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
    with serving_in_thread([Reply(status=status)]) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        said = {"kind": "provider", "provider": "openai", "model": "small", "key": KEY}
        response = begun(owner).post(reverse("console-begin-model"), said)
    assert response.status_code == 422
    assert passkey_origin(tenant).sealed_keys == {}
    page = response.content.decode()
    assert "The provider" in page
    assert KEY not in page


def test_provider_that_does_not_answer_is_not_waited_for(
    tenant: Any, owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llm import model_check

    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
    monkeypatch.setattr(model_check, "SECONDS", 0.5)
    with serving_in_thread([Reply("late", before_first=30.0)]) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        said = {"kind": "provider", "provider": "openai", "model": "small", "key": KEY}
        response = begun(owner).post(reverse("console-begin-model"), said)
    assert response.status_code == 422
    assert "did not answer within" in response.content.decode()


@pytest.mark.parametrize("said", [{"model": ""}, {"key": ""}, {"key": "zwei worte"}, {"provider": "evil"}])
def test_half_a_choice_of_a_model_is_refused(tenant: Any, owner: Any, said: dict[str, str]) -> None:
    whole = {"kind": "provider", "provider": "openai", "model": "small", "key": KEY, **said}
    assert begun(owner).post(reverse("console-begin-model"), whole).status_code == 422


def test_sites_are_kept_as_browsers_say_them(tenant: Any, owner: Any) -> None:
    said = "www.Alder.example\nhttps://shop.alder.example/basket?x=1\n\nhttps://www.alder.example/"
    begun(owner).post(reverse("console-begin-sites"), {"origins": said})
    assert passkey_origin(tenant).allowed_origins == ["https://www.alder.example", "https://shop.alder.example"]


def test_website_on_this_computer_is_allowed_as_http_and_named(tenant: Any, owner: Any) -> None:
    client = begun(owner)
    client.post(reverse("console-begin-sites"), {"origins": "localhost:8795/"})
    assert passkey_origin(tenant).allowed_origins == ["http://localhost:8795"]
    page = client.get(reverse("console-begin-ready")).content.decode()
    assert "<b>http://localhost:8795</b>" in page
    assert "not detected yet" in page


def test_last_screen_watches_until_the_chat_appears(tenant: Any, owner: Any) -> None:
    client = begun(owner)
    client.post(reverse("console-begin-sites"), {"origins": "localhost:8795"})
    watched = f"{reverse('console-begin-ready')}?detected=0"
    assert watched in client.get(reverse("console-begin-ready")).content.decode()
    assert client.get(watched, headers={"HX-Request": "true"}).status_code == 204
    frame = reverse("widget-frame", args=[passkey_origin(tenant).public_key])
    client.get(f"{frame}?test=ticket", headers={"Referer": "http://localhost:8795/"})
    assert client.get(watched, headers={"HX-Request": "true"}).status_code == 204
    client.get(frame, headers={"Referer": "http://localhost:8795/"})
    seen = client.get(watched, headers={"HX-Request": "true"})
    assert seen.status_code == 200
    page = seen.content.decode()
    assert "not detected yet" not in page
    assert "?detected=" not in page


@pytest.mark.parametrize(
    "said", ["*", "http://plain.example", "https://a b", "javascript:alert(1)", "https://*.x.example"]
)
def test_site_that_is_no_exact_origin_is_refused(tenant: Any, owner: Any, said: str) -> None:
    response = begun(owner).post(reverse("console-begin-sites"), {"origins": said})
    assert response.status_code == 422
    assert passkey_origin(tenant).allowed_origins == []


def test_website_is_handed_in_once(tenant: Any, owner: Any) -> None:
    said = {"what": "website", "address": "example.com", "once": str(uuid4())}
    client = begun(owner)
    for _ in range(2):
        client.post(reverse("console-begin-knowledge"), said)
    with tenant_scope(tenant):
        assert Intake.objects.count() == 1


@pytest.mark.parametrize("address", ["http://127.0.0.1:8000/", "localhost", "http://[::1]/", "169.254.169.254"])
def test_website_inside_of_the_house_is_refused(tenant: Any, owner: Any, address: str) -> None:
    said = {"what": "website", "address": address, "once": str(uuid4())}
    assert begun(owner).post(reverse("console-begin-knowledge"), said).status_code == 422


def test_files_are_handed_in(tenant: Any, owner: Any) -> None:
    files = [SimpleUploadedFile("a.txt", b"One"), SimpleUploadedFile("../b.md", b"Two")]
    begun(owner).post(reverse("console-begin-knowledge"), {"what": "files", "files": files, "once": str(uuid4())})
    with tenant_scope(tenant):
        assert sorted(Intake.objects.values_list("name", flat=True)) == ["a.txt", "b.md"]


def test_last_screen_shows_the_line_for_the_site(tenant: Any, owner: Any) -> None:
    page = begun(owner).get(reverse("console-begin-ready")).content.decode()
    assert f"data-deployment=&quot;{passkey_origin(tenant).public_key}&quot;" in page


def test_every_step_is_written_down_once(tenant: Any, owner: Any) -> None:
    client = begun(owner)
    for _ in range(2):
        client.post(reverse("console-begin-knowledge"), {"on": "1"})
    with tenant_scope(tenant):
        steps = AuditEntry.objects.filter(event=AuditEvent.FIRST_RUN_WENT_ON).values_list("data", flat=True)
        assert len([step for step in steps if "knowledge" in step]) == 1


def test_first_run_of_another_company_is_its_own(tenant: Any, owner: Any) -> None:
    begun(owner).post(reverse("console-begin-sites"), {"origins": "https://www.alder.example"})
    foreign = make_tenant()
    stranger = make_member(foreign, "owner")
    assert "alder.example" not in begun(stranger).get(reverse("console-begin-sites")).content.decode()


def test_owner_of_the_first_company_is_its_owner(nobody: None) -> None:
    said = typed()
    Client().post(setup(), said)
    (membership,) = memberships_of(User.objects.get(email=said["email"]))
    assert membership.role == "owner"
    assert Tenant.objects.filter(pk=membership.tenant_id).exists()


def test_last_screen_shows_the_logo_and_avatar_and_leads_to_them(tenant: Any, owner: Any) -> None:
    client = browser(owner)
    empty = client.get(reverse("console-begin-ready")).content.decode()
    with tenant_scope(tenant):
        deployment = FirstRun.objects.get().deployment
        studio = reverse("console-studio", args=[deployment.pk])
        assert f'href="{studio}#pictures">Add logo and avatar</a>' in empty
        assert '<img class="logo"' not in empty
        store_picture(deployment, PictureKind.LOGO, png(), actor="system")
        address = Deployment.objects.get(pk=deployment.pk).logo["address"]
    shown = client.get(reverse("console-begin-ready")).content.decode()
    assert f'<img class="logo" src="{address}" alt="Logo">' in shown
    assert '<img class="avatar"' not in shown
    assert f'href="{studio}#pictures">Change logo and avatar</a>' in shown
