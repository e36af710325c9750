"""Who does a site say its visitor is? Tokens forged, expired, turned round, of other keys and deployments first."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
import time_machine
from django.core.cache.backends.locmem import LocMemCache
from django.test import Client, override_settings

from apps.access import ratelimit
from apps.access.grants import Passed
from apps.audit.models import AuditEntry
from apps.inbox import handoff
from apps.sessions import levels, policy, turn
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants.models import Deployment
from apps.tenants.services import retire_identity_key
from kernel.clock import now
from kernel.tenancy import in_scope, in_thread, tenant_scope
from kernel.tenancy.scope import ScopeError, current_scope
from tests.access.test_ratelimit import NO_CACHE, wrong
from tests.factories.identity import JONAS, MARIA, converse, make_identity_desk
from tests.factories.sessions import say
from tests.factories.signed import Site, key_pair, make_site, unsigned
from tests.factories.tenants import make_deployment
from tests.rivals import interrupted

ALGORITHMS = ("HS256", "EdDSA", "ES256", "RS256")


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Deployment:
    return make_identity_desk(tenant, tmp_path)


@pytest.fixture
def site(desk: Deployment) -> Site:
    return make_site(desk)


class Page:
    """The page around a widget: shows tokens, keeps the resume token as a browser does."""

    def __init__(self, client: Client, deployment: Deployment) -> None:
        self.client, self.deployment, self.resume = client, deployment, ""

    def show(self, token: str) -> dict[str, Any]:
        """The answer's identity; the conversation goes on or begins."""
        body = {"identity_token": token, **({"resume_token": self.resume} if self.resume else {})}
        path = f"/api/v1/widget/{self.deployment.public_key}/sessions"
        response = self.client.post(path, body, content_type="application/json")
        assert response.status_code == 201, response.content
        self.answer = response.json()
        self.resume = self.answer["resume_token"]
        identity: dict[str, Any] = self.answer.get("identity", {})
        return identity

    def reason(self, token: str) -> str:
        identity = self.show(token)
        assert identity["accepted"] == (not identity["reason"])
        return str(identity["reason"])

    @property
    def session(self) -> ChatSession:
        with tenant_scope(self.deployment.tenant_id):
            row: ChatSession = ChatSession.objects.get(pk=self.answer["session_id"])
        return row

    def audited(self, event: str) -> list[Any]:
        with tenant_scope(self.deployment.tenant_id):
            rows = AuditEntry.objects.filter(subject=f"session:{self.answer['session_id']}", event=event)
            return [json.loads(data) for data in rows.order_by("seq").values_list("data", flat=True)]


def forget_last_customer(session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        ChatSession.objects.filter(pk=session.pk).update(last_customer="")


@pytest.fixture
def page(client: Client, desk: Deployment) -> Page:
    return Page(client, desk)


# -- what is not believed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_token_signed_with_another_key_is_refused(page: Page, desk: Deployment, algorithm: str) -> None:
    site = make_site(desk, algorithm)
    other = "another-secret-of-thirty-two-bytes" if algorithm == "HS256" else key_pair(algorithm)[0]
    assert page.reason(site.sign(secret=other)) == "identity_signature"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("none", ["none", "None", "NONE", "nOnE", "", None, "HS256 ", ["HS256"], {"a": 1}])
def test_token_without_an_algorithm_of_ours_is_refused(page: Page, desk: Deployment, algorithm: str, none: Any) -> None:
    site = make_site(desk, algorithm)
    token = unsigned({"alg": none, "typ": "JWT", "kid": "web"}, site.claims())
    assert page.reason(token) in ("identity_algorithm", "identity_malformed")


@pytest.mark.parametrize("algorithm", ["EdDSA", "ES256", "RS256"])
def test_public_key_does_not_serve_as_a_shared_secret(page: Page, desk: Deployment, algorithm: str) -> None:
    """The classic: HS256 over the PEM that everybody may know."""
    site = make_site(desk, algorithm)
    signing = f"{unsigned({'alg': 'HS256', 'kid': 'web'}, site.claims()).rsplit('.', 1)[0]}"
    signature = jwt.utils.base64url_encode(
        jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(
            signing.encode(), site.row.public_key.encode()
        )
    ).decode()
    assert page.reason(f"{signing}.{signature}") == "identity_algorithm"


def test_token_with_its_own_key_inside_is_refused(page: Page, site: Site) -> None:
    private, _ = key_pair("RS256")
    headers = {"jwk": {"kty": "RSA"}, "jku": "https://evil.test/keys", "x5u": "https://evil.test/x", "kid": "web"}
    assert page.reason(site.sign(secret=private, algorithm="RS256", headers=headers)) == "identity_algorithm"


def test_token_of_an_unknown_key_is_refused(page: Page, site: Site) -> None:
    assert page.reason(site.sign(headers={"kid": "other"})) == "identity_key_unknown"


@pytest.mark.parametrize("kid", ["../../etc/passwd", "' OR 1=1 --", "web\u0000", "", None, 7, ["web"]])
def test_key_id_is_only_compared(page: Page, site: Site, kid: Any) -> None:
    token = unsigned({"alg": "HS256", "kid": kid}, site.claims(), "c2ln")
    assert page.reason(token) in ("identity_key_unknown", "identity_malformed")


def test_token_of_a_retired_key_is_refused(page: Page, site: Site) -> None:
    make_site(site.deployment, key_id="newer")
    with tenant_scope(site.deployment.tenant_id):
        retire_identity_key(site.row)
    assert page.reason(site.sign()) == "identity_key_unknown"


def test_token_of_another_deployment_is_refused(page: Page, site: Site, tenant: Any) -> None:
    other = make_deployment(tenant)
    assert page.reason(site.sign(aud=other.public_key)) == "identity_wrong_deployment"


def test_token_of_another_deployments_key_is_refused(page: Page, site: Site, tenant: Any) -> None:
    sister = make_site(make_deployment(tenant))
    assert page.reason(sister.sign(aud=site.deployment.public_key)) == "identity_signature"


def test_token_for_nowhere_is_refused(page: Page, site: Site) -> None:
    assert page.reason(site.sign(aud=None)) == "identity_wrong_deployment"


def test_audience_outranks_an_issuer_that_would_fit(page: Page, site: Site) -> None:
    assert page.reason(site.sign(aud="somewhere", iss=site.deployment.public_key)) == "identity_wrong_deployment"


@pytest.mark.parametrize("seconds", [0, -1, -600])
def test_expired_token_is_refused(page: Page, site: Site, seconds: int) -> None:
    moment = int(now().timestamp())
    assert page.reason(site.sign(exp=moment + seconds, iat=moment - 900)) == "identity_expired"


def test_token_replayed_after_its_end_is_refused(page: Page, site: Site) -> None:
    token = site.sign()
    assert page.reason(token) == ""
    with time_machine.travel(now() + timedelta(seconds=601), tick=False):
        assert page.reason(token) == "identity_expired"


def test_token_that_lives_too_long_is_refused(page: Page, site: Site) -> None:
    assert page.reason(site.sign(exp=int(now().timestamp()) + 3700)) == "identity_too_long"


def test_old_token_that_was_made_to_last_is_refused_near_its_end_too(page: Page, site: Site) -> None:
    moment = int(now().timestamp())
    assert page.reason(site.sign(iat=moment - 86_400, exp=moment + 60)) == "identity_too_long"


@pytest.mark.parametrize("claim", ["iat", "nbf"])
def test_token_from_the_future_is_refused(page: Page, site: Site, claim: str) -> None:
    assert page.reason(site.sign(**{claim: int(now().timestamp()) + 120})) == "identity_not_yet"


@pytest.mark.parametrize("end", ["soon", True, 1e400, float("nan"), -1e300, 1e300, 10**400, [], {}])
def test_end_that_is_no_time_is_refused(page: Page, site: Site, end: Any) -> None:
    assert page.reason(site.sign(exp=end)) in ("identity_malformed", "identity_expired", "identity_too_long")


@pytest.mark.parametrize("missing", ["exp", "sub"])
def test_token_that_lacks_what_it_must_say_is_refused(page: Page, site: Site, missing: str) -> None:
    assert page.reason(site.sign(**{missing: None})) == "identity_incomplete"


@pytest.mark.parametrize("sub", ["", " ", " C-1", "C-1\n", "C\u202e1", "C-1\u0000", "C-1\u200b", "x" * 81, 7, ["C-1"]])
def test_subject_that_is_no_plain_text_is_refused(page: Page, site: Site, sub: Any) -> None:
    key = jwt.api_jws.PyJWS()
    token = key.encode(json.dumps(site.claims(sub=sub)).encode(), site.secret, "HS256", headers={"kid": "web"})
    assert page.reason(token) == "identity_subject"


@pytest.mark.parametrize("token", ["a", "a.b.c", "....", "\u00e9.\u00e9.\u00e9", "e30.e30.", "x" * 8192, "{}", "."])
def test_broken_token_is_refused(page: Page, site: Site, token: str) -> None:
    assert page.reason(token) in ("identity_malformed", "identity_algorithm")


def test_token_of_nested_json_is_refused(page: Page, site: Site) -> None:
    assert page.reason(unsigned("[" * 2500, site.claims())) == "identity_malformed"


def test_token_with_a_critical_header_that_nobody_knows_is_refused(page: Page, site: Site) -> None:
    assert page.reason(site.sign(headers={"kid": "web", "crit": ["mine"], "mine": 1})) == "identity_malformed"


def test_oversized_token_is_a_bad_request(client: Client, site: Site) -> None:
    path = f"/api/v1/widget/{site.deployment.public_key}/sessions"
    response = client.post(path, {"identity_token": site.sign(pad="x" * 8192)}, content_type="application/json")
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid"


@pytest.mark.parametrize("bad", ["signature", "expired"])
def test_bad_token_raises_nothing(page: Page, site: Site, bad: str) -> None:
    page.show(site.sign(exp=1, iat=0) if bad == "expired" else site.sign(secret="x" * 32))
    assert page.session.level == "public"
    assert page.session.customer == ""


def test_bad_token_is_audited_without_what_it_says(page: Page, site: Site) -> None:
    page.show(site.sign(secret="x" * 32, sub="C-7", name="Nobody"))
    assert page.audited("identity_failed") == [{"by": "signed", "reason": "identity_signature"}]


async def test_visitor_with_a_bad_token_is_answered_all_the_same(page: Page, site: Site) -> None:
    await in_thread(page.show, site.sign(secret="x" * 32))
    session = await in_thread(lambda: page.session)
    assert (await converse(session, "Hello")).turns == 1


def test_bad_token_takes_no_level_away(page: Page, site: Site) -> None:
    page.show(site.sign())
    page.show(site.sign(secret="x" * 32))
    assert page.session.level == "verified"


def test_deployment_without_keys_believes_nobody(page: Page, tenant: Any) -> None:
    assert page.reason(make_site(make_deployment(tenant)).sign()) == "identity_key_missing"


def test_gate_that_no_level_asks_for_raises_nothing(page: Page, desk: Deployment) -> None:
    assert page.reason(make_site(desk, gate="something_else").sign()) == "identity_gate_unused"


# -- how often it may be tried -----------------------------------------------------------------------------------------


def test_sixth_bad_token_of_a_conversation_is_not_looked_at(page: Page, site: Site) -> None:
    page.show(site.sign())
    reasons = [page.reason(site.sign(secret="x" * 32)) for _ in range(ratelimit.MAX_PER_CONVERSATION + 1)]
    assert reasons == ["identity_signature"] * ratelimit.MAX_PER_CONVERSATION + ["identity_throttled"]


def test_good_tokens_use_nothing_up(page: Page, site: Site) -> None:
    assert {page.reason(site.sign()) for _ in range(ratelimit.MAX_PER_CONVERSATION + 2)} == {""}


async def test_wrong_claims_and_bad_tokens_count_together(page: Page, site: Site) -> None:
    await in_thread(page.show, site.sign(secret="x" * 32))
    session = await in_thread(lambda: page.session)
    await converse(session, *wrong(1950, 1951, 1952, 1953, 1954))
    assert await in_thread(page.reason, site.sign()) == "identity_throttled"


def test_throttled_token_is_audited(page: Page, site: Site) -> None:
    page.show(site.sign())
    for _ in range(ratelimit.MAX_PER_CONVERSATION + 1):
        page.show(site.sign(secret="x" * 32))
    assert page.audited("identity_throttled") == [{"by": "signed"}]


def test_token_that_cannot_be_counted_is_not_looked_at(page: Page, site: Site) -> None:
    page.show(site.sign(sub="C-1"))
    with override_settings(CACHES=NO_CACHE):
        assert page.reason(site.sign()) == "identity_unavailable"


class OutsideOfScopes(LocMemCache):
    """A cache that may be far away: nobody holds a lock or a transaction while they ask it."""

    def incr(self, key: str, delta: int = 1, version: int | None = None) -> int:
        with pytest.raises(ScopeError):
            current_scope()
        return super().incr(key, delta, version)


def test_tries_are_counted_and_taken_back_outside_of_transactions(page: Page, site: Site) -> None:
    page.show(site.sign())
    with override_settings(CACHES={"default": {"BACKEND": f"{__name__}.OutsideOfScopes", "LOCATION": "outside"}}):
        assert page.reason(site.sign()) == ""


# -- what is believed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_good_token_raises_the_level(page: Page, desk: Deployment, algorithm: str) -> None:
    assert page.reason(make_site(desk, algorithm).sign()) == ""
    session = page.session
    assert session.level == "verified"
    assert session.customer == "C-1"
    assert session.customer_name == "Maria Ortega"


def test_good_token_is_audited_as_any_passed_gate(page: Page, site: Site) -> None:
    page.show(site.sign())
    raised = {"customer": "C-1", "from": "public", "gates": ["identity_verified"], "level": "verified"}
    assert page.audited("level_raised") == [raised]


def test_token_may_name_the_deployment_as_its_issuer(page: Page, site: Site) -> None:
    assert page.reason(site.sign(aud=None, iss=site.deployment.public_key)) == ""


def test_token_may_name_several_audiences(page: Page, site: Site) -> None:
    assert page.reason(site.sign(aud=["elsewhere", site.deployment.public_key])) == ""


def test_token_without_a_key_id_is_checked_with_the_key_of_its_algorithm(page: Page, site: Site) -> None:
    assert page.reason(site.sign(headers={})) == ""


def test_both_keys_are_good_while_a_site_changes_them(page: Page, site: Site) -> None:
    newer = make_site(site.deployment, key_id="newer")
    assert page.reason(site.sign()) == ""
    assert page.reason(newer.sign()) == ""


@pytest.mark.parametrize("name", ["Maria\u202e", "x" * 121, 7, None])
def test_name_that_is_no_plain_text_is_left_out(page: Page, site: Site, name: Any) -> None:
    assert page.reason(site.sign(name=name)) == ""
    assert page.session.customer_name == ""


def test_level_ends_with_the_token(page: Page, site: Site) -> None:
    end = int(now().timestamp()) + 120
    page.show(site.sign(exp=end))
    until = page.session.level_expires_at
    assert until is not None and until.timestamp() == end


def test_level_ends_by_its_own_seconds_when_the_token_lives_longer(page: Page, site: Site) -> None:
    page.show(site.sign(exp=int(now().timestamp()) + 3500))
    until = page.session.level_expires_at
    assert until is not None and until <= now() + timedelta(seconds=900)


async def test_level_of_an_ended_token_is_gone_in_the_next_turn(page: Page, site: Site) -> None:
    await in_thread(page.show, site.sign())
    session = await in_thread(lambda: page.session)
    with time_machine.travel(now() + timedelta(seconds=601)):
        assert (await converse(session, "Hello")).level == "public"


def test_token_shown_again_writes_nothing(page: Page, site: Site) -> None:
    token = site.sign()
    for _ in range(3):
        page.show(token)
    with tenant_scope(page.deployment.tenant_id):
        assert ChronicleEntry.objects.filter(session=page.session, kind="access").count() == 1


def test_token_of_another_customer_begins_another_conversation(page: Page, site: Site) -> None:
    page.show(site.sign())
    first = page.session
    page.show(site.sign(sub="C-2"))
    assert page.session.pk != first.pk and page.session.customer == "C-2"


def test_another_customer_is_not_shown_a_conversation_of_the_version_before(page: Page, site: Site) -> None:
    """Rows of before say whose they are, and not whose they were."""
    page.show(site.sign())
    first = page.session
    forget_last_customer(first)
    page.show(site.sign(sub="C-2"))
    assert page.session.pk != first.pk


async def test_conversation_of_the_version_before_stays_its_customers_when_the_level_ends(
    page: Page, site: Site
) -> None:
    await in_thread(page.show, site.sign())
    first = await in_thread(lambda: page.session)
    await in_thread(forget_last_customer, first)
    with time_machine.travel(now() + timedelta(seconds=1200), tick=False):
        await converse(first, "Hello")
        await in_thread(page.show, site.sign(sub="C-2"))
    assert (await in_thread(lambda: page.session)).pk != first.pk


def test_customer_named_while_another_is_does_not_get_their_conversation(page: Page, site: Site) -> None:
    page.show(site.sign(secret="x" * 32))
    first = page.session

    def another(meet: Callable[[], None]) -> None:
        with tenant_scope(page.deployment.tenant_id):
            row = lock_session(first.pk)
            meet()
            levels.move(row, policy.load(page.deployment).levels, [Passed("identity_verified", "C-2")])

    interrupted(another, lambda: page.reason(site.sign()))
    assert page.session.pk != first.pk
    assert page.session.customer == "C-1"


def test_another_customer_is_shown_nothing_after_the_first_ones_level_has_ended(page: Page, site: Site) -> None:
    page.show(site.sign())
    first = page.session
    with time_machine.travel(now() + timedelta(seconds=1200), tick=False):
        page.show(site.sign(sub="C-2"))
    assert page.session.pk != first.pk


async def test_script_gate_and_signed_identity_pass_the_same_gate(page: Page, site: Site) -> None:
    await in_thread(page.show, site.sign(sub="C-9", secret="x" * 32))
    session = await in_thread(lambda: page.session)
    by_script = (await converse(session, MARIA)).verified_gates
    other = Page(page.client, page.deployment)
    await in_thread(other.show, site.sign())
    assert set(by_script) == set((await in_thread(lambda: other.session)).verified_gates) == {"identity_verified"}


async def test_script_gate_that_finds_another_customer_starts_from_nothing(page: Page, site: Site) -> None:
    await in_thread(page.show, site.sign())
    after = await converse(await in_thread(lambda: page.session), JONAS)
    assert after.customer == "C-2"
    assert [*after.verified_gates] == ["identity_verified"]


def test_conversation_with_a_person_can_be_named_too(page: Page, site: Site, agent: Any) -> None:
    page.show(site.sign(secret="x" * 32))
    with tenant_scope(page.deployment.tenant_id):
        handoff.take_over(page.session.pk, agent)
    page.show(site.sign())
    assert page.session.level == "verified"


def test_token_of_one_tenant_opens_nothing_at_another(client: Client, site: Site, other_tenant: Any) -> None:
    elsewhere = make_site(make_deployment(other_tenant))
    page = Page(client, elsewhere.deployment)
    assert page.reason(site.sign(aud=elsewhere.deployment.public_key)) == "identity_signature"


def test_resumed_conversation_without_a_token_keeps_its_level(client: Client, page: Page, site: Site) -> None:
    page.show(site.sign())
    path = f"/api/v1/widget/{page.deployment.public_key}/sessions"
    client.post(path, {"resume_token": page.resume}, content_type="application/json")
    assert page.session.level == "verified"


async def test_turn_that_ran_meanwhile_takes_nothing_back(page: Page, site: Site) -> None:
    """It began when the level had run out, and writes that down after the site has named the visitor anew."""
    await in_thread(page.show, site.sign())
    session = await in_thread(lambda: page.session)
    with time_machine.travel(now() + timedelta(seconds=700), tick=False):
        await in_thread(say, session, "Hello")
        opened = await in_scope(session.tenant_id, turn.open_turn, session.pk, consumer="test")
        assert opened is not None and opened.access.grant.level == "public"
        await in_thread(page.show, site.sign())
        await turn.run(opened)
        assert (await in_thread(lambda: page.session)).level == "verified"
