"""Does every page of the administration open for who may see it, refuse who may not, and cost the same for many rows?

One walk over all registered models; what single pages do is in the other files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import uuid4

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.db.models import ForeignKey
from django.forms import JSONField, UUIDField
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.approvals.models import ApprovalToken, Card, Decision
from apps.audit.admin_base import BaseAdmin
from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.guard.models import Budget
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants.models import Deployment, Membership, MessageKey, Tenant, User
from kernel.tenancy import platform_scope, tenant_scope
from tests.factories.approvals import make_plan, make_token
from tests.factories.guard import make_budget
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment, make_member
from tests.platform.administration import MODELS, TENANT_MODELS, browser_of, changed, label, page_of

PAGES = ("change", "history", "delete")


def furnish(tenant: Any) -> None:
    """Some of what a tenant has, evidence and settings."""
    owner = make_member(tenant, "owner")
    make_token(tenant, owner, make_plan())
    place = make_deployment(tenant)
    say(make_session(place), "Hello")
    make_budget(tenant, "5", deployment=place)
    with tenant_scope(tenant):
        MessageKey.objects.create(user=owner, key_id=f"k-{uuid4().hex[:8]}", public_key="PEM")


def first_row(model: Any, tenant: Any) -> Any:
    """A row of the tenant's; for what belongs to nobody, any."""
    with platform_scope("walk"):
        rows = model._default_manager.all()
        return (rows.filter(tenant_id=tenant.pk) if model in TENANT_MODELS else rows).order_by("pk").first()


def answers(browser: Client, model: Any, row: Any) -> Iterator[tuple[str, Any]]:
    for name in ("changelist", "add"):
        yield name, browser.get(page_of(model, name))
    for name in PAGES:
        yield name, browser.get(page_of(model, name, row.pk if row else uuid4()))


def expected(model: Any, request: Any, row: Any, *, platform_only: bool) -> dict[str, int]:
    """What each page answers: 200, 403 where it may not be done, 302 to the index where there is no such row."""
    if platform_only:
        return dict.fromkeys(("changelist", "add", *PAGES), 403)
    page = admin.site._registry[model]
    gone = {} if row else dict.fromkeys(("change", "history"), 302)
    deletes = 200 if row else 302
    return {
        "changelist": 200,
        "add": 200 if page.has_add_permission(request) else 403,
        "change": 200,
        "history": 200,
        "delete": deletes if page.has_delete_permission(request, row) else 403,
        **gone,
    }


class Asking:
    """A request as far as permissions look at it."""

    def __init__(self, user: Any) -> None:
        self.user = user
        self.GET: dict[str, str] = {}


def walked(browser: Client, user: Any, tenant: Any, *, foreign: Sequence[str] = ()) -> dict[str, Any]:
    """What did not answer as it should or names something `foreign`, by model and page."""
    wrong: dict[str, Any] = {}
    for model in MODELS:
        row = first_row(model, tenant)
        scope = platform_scope("walk") if user.is_superuser else tenant_scope(tenant)
        forbidden = not user.is_superuser and model not in TENANT_MODELS
        with scope:
            meant = expected(model, Asking(user), row, platform_only=forbidden)
        for name, answer in answers(browser, model, row):
            if answer.status_code != meant[name]:
                wrong[f"{label(model)} {name}"] = (answer.status_code, meant[name])
            elif named := [word for word in foreign if word in answer.content.decode()]:
                wrong[f"{label(model)} {name}"] = named
    return wrong


def test_every_page_answers_a_superuser(tenant: Any) -> None:
    furnish(tenant)
    user = User.objects.create_superuser(f"root-{uuid4().hex}@example.test", "a-long-password")
    assert walked(browser_of(user), user, tenant) == {}


def test_every_page_answers_an_owner_and_names_no_other_tenant(tenant: Any, owner: Any, other_tenant: Any) -> None:
    """Neither lists, nor filters, nor what can be chosen."""
    furnish(tenant)
    place = make_deployment(other_tenant, title=f"Foreign {uuid4().hex}")
    assert walked(browser_of(owner), owner, tenant, foreign=[place.title, other_tenant.name]) == {}


def test_no_page_of_a_foreign_row_opens_for_an_owner(keeper: Client, other_tenant: Any) -> None:
    furnish(other_tenant)
    opened = {
        f"{label(model)} {name}"
        for model in TENANT_MODELS
        if (row := first_row(model, other_tenant))
        for name in PAGES
        if keeper.get(page_of(model, name, row.pk)).status_code not in (302, 403)
    }
    assert opened == set()


def test_no_form_asks_for_json_or_a_typed_id(tenant: Any) -> None:
    """Lists, maps and references have fields of their own in every form that saves."""
    furnish(tenant)
    asking: Any = Asking(User(is_superuser=True, is_staff=True, is_active=True))
    typed = set()
    for model in MODELS:
        page, row = admin.site._registry[model], first_row(model, tenant)
        with platform_scope("walk"):
            forms = [page.get_form(asking, None)] if page.has_add_permission(asking) else []
            forms += (
                [page.get_form(asking, row, change=True)] if row and page.has_change_permission(asking, row) else []
            )
            typed |= {
                f"{label(model)} {name}"
                for form in forms
                for name, field in form.base_fields.items()
                if isinstance(field, (JSONField, UUIDField))
            }
    assert typed == set()


@pytest.mark.parametrize("model", [Card, Decision, ApprovalToken, Budget, ChatSession, ChronicleEntry, Deployment])
def test_list_costs_the_same_for_more_rows(keeper: Client, tenant: Any, model: Any) -> None:
    furnish(tenant)
    few = _queries(lambda: keeper.get(page_of(model, "changelist")))
    furnish(tenant)
    furnish(tenant)
    assert _queries(lambda: keeper.get(page_of(model, "changelist"))) == few


def _queries(work: Callable[[], Any]) -> int:
    work()
    with CaptureQueriesContext(connection) as found:
        work()
    return len(found)


@pytest.mark.parametrize("model", MODELS, ids=label)
def test_page_is_of_our_kind_and_its_list_brings_what_its_columns_refer_to(model: Any) -> None:
    """A column that refers to another row is read with the list, or every line would ask for it."""
    page = admin.site._registry[model]
    columns = {field.name for field in model._meta.fields if isinstance(field, ForeignKey)} & {*page.list_display}
    brought = page.list_select_related
    assert isinstance(page, BaseAdmin)
    assert columns <= ({*brought} if isinstance(brought, list | tuple) else set())


def test_change_is_kept_with_before_and_after_prose_as_a_digest_and_not_in_djangos_log(
    keeper: Client, deployment: Any
) -> None:
    before = LogEntry.objects.count()
    changed(keeper, deployment, timezone="Europe/Berlin", persona="Be kind to everybody")
    page = keeper.get(page_of(Deployment, "history", deployment.pk)).content.decode()
    with tenant_scope(deployment.tenant_id):
        entry = AuditEntry.objects.filter(event=AuditEvent.ADMIN_CHANGED).latest("seq")
    assert '<th scope="row">timezone</th><td></td><td>text:' in page
    assert "kind" not in entry.data
    assert '"persona":"text:20:' in entry.data
    assert LogEntry.objects.count() == before


def test_numbers_enter_the_chain_as_they_are(keeper: Client, tenant: Any) -> None:
    budget = make_budget(tenant, "5")
    keeper.post(page_of(Budget, "change", budget.pk), {"period": budget.period, "limit_usd": "7"})
    page = keeper.get(page_of(Budget, "history", budget.pk)).content.decode()
    assert "<td>5</td><td>7</td>" in page


def test_password_is_masked(root: Client, tenant: Any) -> None:
    data = {"email": f"{uuid4().hex}@example.test", "usable_password": "true"}
    root.post(page_of(User, "add"), {**data, "password1": "long-secret-word", "password2": "long-secret-word"})
    with platform_scope("walk"):
        person = User.objects.get(email=data["email"])
        entry = AuditEntry.objects.get(subject=f"row:{person.pk}")
    assert '"password":"masked"' in entry.data and data["email"] not in entry.data


def test_history_shows_a_superusers_password_change(root: Client, viewer: Any) -> None:
    address = page_of(User, "change", viewer.pk).replace("change/", "password/")
    root.post(address, {"usable_password": "true", "password1": "long-secret-word", "password2": "long-secret-word"})
    page = root.get(page_of(User, "history", viewer.pk)).content.decode()
    assert '<th scope="row">password</th><td>masked</td><td>masked</td>' in page


def test_history_of_a_tenant_comes_from_its_own_chain(root: Client, tenant: Any) -> None:
    data = {"name": "Renamed", "slug": tenant.slug, "timezone": "Europe/Paris"}
    root.post(page_of(Tenant, "change", tenant.pk), data)
    with tenant_scope(tenant):
        assert AuditEntry.objects.filter(event=AuditEvent.ADMIN_CHANGED, subject=f"row:{tenant.pk}").count() == 1


def test_action_acts_once_it_is_confirmed(keeper: Client, tenant: Any, owner: Any) -> None:
    with tenant_scope(tenant):
        key = MessageKey.objects.create(user=owner, key_id="k1", public_key="PEM")
    data = {"action": "retire", "_selected_action": [str(key.pk)]}
    page = keeper.post(page_of(MessageKey, "changelist"), data).content.decode()
    with tenant_scope(tenant):
        key.refresh_from_db()
    assert "accepted from now on." in page
    assert key.retired_at is None
    keeper.post(page_of(MessageKey, "changelist"), data | {"post": "yes"})
    with tenant_scope(tenant):
        key.refresh_from_db()
    assert key.retired_at is not None


def test_superuser_can_look_at_one_tenant(root: Client, tenant: Any, other_tenant: Any) -> None:
    mine, theirs = make_deployment(tenant), make_deployment(other_tenant)
    page = root.get(page_of(Deployment, "changelist"), {"tenant__id__exact": str(tenant.pk)}).content.decode()
    assert mine.public_key in page and theirs.public_key not in page


def test_membership_list_is_found_by_address(keeper: Client, tenant: Any) -> None:
    person, other = make_member(tenant, "viewer"), make_member(tenant, "viewer")
    page = keeper.get(page_of(Membership, "changelist"), {"q": person.email}).content.decode()
    assert person.email in page and other.email not in page
