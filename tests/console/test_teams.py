"""The pages of teams, and a conversation's team and priority."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from apps.inbox.models import Team, TeamMember
from apps.sessions.models import ChatSession
from kernel.tenancy import tenant_scope
from tests.factories.console import HTMX, browser
from tests.factories.tenants import make_member, make_tenant
from tests.inbox.test_teams import make_team


def test_owner_makes_changes_and_deletes_a_team(tenant: Any, owner: Any, agent: Any) -> None:
    posted = {
        "name": "Claims",
        "queues": "damage, loss",
        "assignment": "skill",
        "capacity": "3",
        "hours_mon": "09:00-17:00",
        "holidays": "2026-12-25\r\n2026-12-26",
        "timezone": "Europe/Berlin",
        "members": str(agent.pk),
        f"skills_{agent.pk}": "DE, refunds",
    }
    made = browser(owner).post(reverse("console-team-new"), posted)
    with tenant_scope(tenant):
        team = Team.objects.get()
        member = TeamMember.objects.get()
    assert made["Location"] == reverse("console-team", args=[team.pk])
    assert team.queues == ["damage", "loss"]
    assert team.holidays == ["2026-12-25", "2026-12-26"]
    assert member.skills == ["de", "refunds"]
    shown = browser(owner).get(reverse("console-team", args=[team.pk])).content.decode()
    assert 'value="de, refunds"' in shown
    assert 'value="09:00-17:00"' in shown
    browser(owner).post(reverse("console-team", args=[team.pk]), {**posted, "members": [], "capacity": "7"})
    with tenant_scope(tenant):
        assert Team.objects.get().capacity == 7
        assert not TeamMember.objects.exists()
    browser(owner).post(reverse("console-team-delete", args=[team.pk]))
    with tenant_scope(tenant):
        assert not Team.objects.exists()


def test_refused_team_keeps_what_was_typed(tenant: Any, owner: Any) -> None:
    answer = browser(owner).post(reverse("console-team-new"), {"name": "<b>Claims", "capacity": "x"})
    assert answer.status_code == 400
    assert "&lt;b&gt;Claims" in answer.content.decode()
    assert "<b>Claims" not in answer.content.decode()


def test_another_companys_team_is_not_found(owner: Any) -> None:
    other = make_tenant()
    foreign = make_team(make_member(other, "owner"), other)
    assert browser(owner).get(reverse("console-team", args=[foreign.pk])).status_code == 404
    assert browser(owner).post(reverse("console-team-delete", args=[foreign.pk])).status_code == 404


def test_list_shows_who_is_available_and_a_member_goes_away(tenant: Any, owner: Any, agent: Any) -> None:
    make_team(owner, tenant, agent)
    before = browser(agent).get(reverse("console-teams")).content.decode()
    browser(agent).post(reverse("console-availability"), {"away": "1"})
    after = browser(agent).get(reverse("console-teams")).content.decode()
    assert "Set to away" in before
    assert "Set to available" in after
    assert "New team" not in after
    assert "New team" in browser(owner).get(reverse("console-teams")).content.decode()


def test_conversation_gets_a_team_and_a_priority_and_is_found_by_the_team(
    tenant: Any, owner: Any, agent: Any, session: ChatSession
) -> None:
    team = make_team(owner, tenant, agent)
    press = browser(agent)
    press.post(reverse("console-conversation-team", args=[session.pk]), {"team": str(team.pk)}, **HTMX)
    press.post(reverse("console-conversation-priority", args=[session.pk]), {"priority": "urgent"}, **HTMX)
    shown = press.get(reverse("console-conversation", args=[session.pk])).content.decode()
    assert '<span class="chip">Claims</span>' in shown
    assert "Priority: Urgent" in shown
    assert f"c-{session.pk}" in press.get(reverse("console-inbox"), {"team": str(team.pk)}).content.decode()
    press.post(reverse("console-conversation-team", args=[session.pk]), {"team": ""}, **HTMX)
    assert f"c-{session.pk}" not in press.get(reverse("console-inbox"), {"team": str(team.pk)}).content.decode()
    wrong = press.post(reverse("console-conversation-priority", args=[session.pk]), {"priority": "panic"}, **HTMX)
    assert wrong.status_code == 404
