"""Pages without a socket poll the head of the audit log, and that keeps a visit going."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from apps.tenants import visits
from apps.tenants.models import Visit
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.audit import make_entries
from tests.factories.console import HTMX, browser
from tests.factories.tenants import make_member
from tests.rivals import race


def _rail(user: Any) -> Any:
    return browser(user).get(reverse("console-rail"), **HTMX)


def _visit(tenant: Any, user: Any, **ago: timedelta) -> None:
    moments = {name: now() - span for name, span in ago.items()}
    with tenant_scope(tenant):
        Visit.objects.create(user=user, **{"since": moments["last_at"], **moments})


def _last(tenant: Any, user: Any) -> Any:
    with tenant_scope(tenant):
        return visits.last_visit_ended_at(user)


def test_rail_tells_how_far_the_log_has_come(tenant: Any, viewer: Any) -> None:
    make_entries(tenant, 3)
    assert _rail(viewer)["X-Console-Seen"] == "3"


def test_rail_tells_nothing_of_another_tenants_log(tenant: Any, other_tenant: Any) -> None:
    make_entries(tenant, 3)
    assert _rail(make_member(other_tenant, "owner"))["X-Console-Seen"] == "0"


def test_who_was_never_here_has_no_last_visit(tenant: Any, viewer: Any) -> None:
    assert _last(tenant, viewer) is None


def test_first_visit_has_none_before_it(tenant: Any, viewer: Any) -> None:
    _rail(viewer)
    assert _last(tenant, viewer) is None


def test_new_visit_remembers_when_the_last_one_ended(tenant: Any, viewer: Any) -> None:
    _visit(tenant, viewer, last_at=timedelta(hours=9))
    _rail(viewer)
    assert now() - _last(tenant, viewer) >= timedelta(hours=9)


def test_visit_goes_on_after_a_short_break(tenant: Any, viewer: Any) -> None:
    _visit(tenant, viewer, last_at=timedelta(minutes=20), before=timedelta(hours=9))
    _rail(viewer)
    assert now() - _last(tenant, viewer) >= timedelta(hours=9)


def test_who_comes_back_is_told_before_anything_is_noted(tenant: Any, viewer: Any) -> None:
    """The page is made before its line opens."""
    _visit(tenant, viewer, last_at=timedelta(hours=9), before=timedelta(hours=40))
    assert now() - _last(tenant, viewer) < timedelta(hours=10)


def test_visits_to_one_tenant_are_none_to_another(tenant: Any, other_tenant: Any, viewer: Any) -> None:
    _visit(tenant, viewer, last_at=timedelta(hours=9))
    assert _last(other_tenant, viewer) is None


def test_two_pages_that_open_at_once_begin_one_visit(tenant: Any, viewer: Any) -> None:
    _visit(tenant, viewer, last_at=timedelta(hours=9))
    race(lambda: _rail(viewer), lambda: _rail(viewer))
    assert now() - _last(tenant, viewer) >= timedelta(hours=9)


@pytest.mark.parametrize("role", ["owner", "viewer"])
def test_rail_is_never_kept_by_the_browser(tenant: Any, role: str, request: Any) -> None:
    assert "no-store" in _rail(request.getfixturevalue(role))["Cache-Control"]
