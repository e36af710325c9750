"""Ratings: who rates what, how often, and what is counted of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment
from apps.visitors import ratings
from apps.visitors.enums import RatingScale
from apps.visitors.models import Rating
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment
from tests.factories.visitors import Browser, offer, refused


@pytest.fixture
def session(deployment: Deployment) -> ChatSession:
    offer(deployment, rating="stars")
    session = make_session(deployment)
    say(session, "Hello")
    return session


@pytest.fixture
def visitor(deployment: Deployment, session: ChatSession) -> Browser:
    return Browser(deployment, session)


def test_rating_is_not_taken_where_none_is_asked(deployment: Deployment) -> None:
    session = make_session(deployment)
    say(session, "Hello")
    assert Browser(deployment, session).put("rating", {"score": 5}).status_code == 404


def test_rating_without_a_token_is_refused(visitor: Browser) -> None:
    visitor.token = "forged"
    assert visitor.put("rating", {"score": 5}).status_code == 401


@pytest.mark.parametrize("body", [{}, {"score": 0}, {"score": 6}, {"score": "x"}, {"score": 5, "comment": "x" * 1001}])
def test_rating_beyond_its_scale_is_refused(visitor: Browser, body: dict[str, Any]) -> None:
    assert visitor.put("rating", body).status_code == 400


def test_thumb_is_up_or_down(deployment: Deployment, visitor: Browser) -> None:
    offer(deployment, rating="thumbs")
    assert refused(visitor.put("rating", {"score": 3})) == (400, "invalid_rating")


def test_conversation_in_which_nothing_was_said_is_not_rated(deployment: Deployment, session: ChatSession) -> None:
    assert refused(Browser(deployment, make_session(deployment)).put("rating", {"score": 5})) == (409, "nothing_said")


def test_rating_of_another_conversation_is_not_shown(deployment: Deployment, visitor: Browser) -> None:
    visitor.put("rating", {"score": 5})
    assert Browser(deployment, make_session(deployment)).get("rating").json() == {"score": None, "comment": ""}


def test_rating_is_changed_in_place(visitor: Browser, session: ChatSession) -> None:
    visitor.put("rating", {"score": 2, "comment": "Slow."})
    visitor.put("rating", {"score": 4})
    assert visitor.get("rating").json() == {"score": 4, "comment": ""}
    with tenant_scope(session.tenant_id):
        assert Rating.objects.filter(session=session).count() == 1


def test_same_rating_once_more_writes_nothing(visitor: Browser, session: ChatSession) -> None:
    visitor.put("rating", {"score": 2})
    visitor.put("rating", {"score": 2})
    with tenant_scope(session.tenant_id):
        assert AuditEntry.objects.filter(event="conversation_rated").count() == 1


def test_rating_changed_again_and_again_is_refused(visitor: Browser) -> None:
    answers = [visitor.put("rating", {"score": 1 + n % 2}).status_code for n in range(21)]
    assert answers == [200] * 20 + [429]


def test_rating_of_yesterday_stands(visitor: Browser, session: ChatSession) -> None:
    visitor.put("rating", {"score": 2})
    with tenant_scope(session.tenant_id):
        Rating.objects.update(created_at=now() - ratings.CHANGEABLE - timedelta(seconds=1))
    assert refused(visitor.put("rating", {"score": 5})) == (409, "rating_settled")


def test_database_keeps_ratings_on_their_scale(session: ChatSession) -> None:
    row = Rating(session=session, deployment_id=session.deployment_id, scale=RatingScale.THUMBS, score=3)
    row.created_at = row.changed_at = now()
    with pytest.raises(IntegrityError), tenant_scope(session.tenant_id):
        row.save()


def test_comment_is_not_in_the_audit_log(visitor: Browser, session: ChatSession) -> None:
    visitor.put("rating", {"score": 2, "comment": "Unmistakable"})
    with tenant_scope(session.tenant_id):
        told = AuditEntry.objects.get(event="conversation_rated").data
    assert told == '{"comment":true,"scale":"stars","score":2}'


def test_staff_see_the_rating_as_text(visitor: Browser, session: ChatSession, owner: Any) -> None:
    visitor.put("rating", {"score": 2, "comment": "<i>Slow</i>"})
    page = browser(owner).get(reverse("console-conversation", args=[session.pk])).content.decode()
    assert "2 of 5" in page
    assert "&lt;i&gt;Slow&lt;/i&gt;" in page


def test_figures_count_a_deployment_in_a_time(deployment: Deployment, tenant: Any) -> None:
    elsewhere, start = make_deployment(tenant), now()
    for place, score in ((deployment, 5), (deployment, 2), (elsewhere, 1)):
        offer(place, rating="stars")
        session = make_session(place)
        say(session, "Hello")
        Browser(place, session).put("rating", {"score": score, "comment": "Why" if score == 2 else ""})
    with tenant_scope(tenant):
        here = ratings.rating_figures(deployment, start, now())
        everywhere = ratings.rating_figures(None, start, now())
        before = ratings.rating_figures(None, start - timedelta(days=1), start)
    assert here == ratings.RatingFigures(2, 3.5, {2: 1, 5: 1}, 1)
    assert everywhere.count == 3
    assert before == ratings.RatingFigures(0, None, {}, 0)
