"""Codes: made for a person's eyes, good once and for a while, counted when wrong, under races."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from apps.audit.models import AuditEntry
from apps.safety.models import Challenge, FailedTries, Hold, Step
from apps.safety.rules.holds import Attempts, after_failure, is_expired, wait_seconds
from apps.safety.schemas import Failure, Success
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.safety import DANGER, TO_CONFIRM, TO_VERIFY, Agent, challenge_of, code_of, data, started
from tests.rivals import race

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WRONG = "0" * 32


class Blocked:
    """A stopped agent, and the challenge that it was told."""

    def __init__(self, tenant: Any) -> None:
        self.agent = started(tenant)
        self.challenge = challenge_of(self.agent.report(DANGER))

    def verify(self, code: str) -> Any:
        return self.agent.verify(self.challenge, code)

    def fail(self, times: int) -> list[str]:
        """Codes of the refusals of wrong codes for unknown challenges."""
        return [code_of(self.agent.verify(str(uuid4()), WRONG)) for _ in range(times)]


@pytest.fixture
def blocked(tenant: Any) -> Blocked:
    return Blocked(tenant)


def test_code_has_128_bits_and_is_kept_as_a_hash(blocked: Blocked) -> None:
    code = blocked.agent.code()
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{8}){3}", code)
    with tenant_scope(blocked.agent.tenant):
        stored = Challenge.objects.get().hashed
    assert len(stored) == 64 and code.replace("-", "") not in stored


def test_no_code_is_right_before_somebody_was_shown_one(blocked: Blocked) -> None:
    assert code_of(blocked.verify("")) == "TOKEN_INVALID"


@pytest.mark.parametrize("given", ["{}", " {} ", "{}\n"])
def test_code_is_taken_as_people_type_it_and_once(blocked: Blocked, given: str) -> None:
    code = given.format(blocked.agent.code().upper().replace("-", " "))
    assert data(blocked.verify(code))["verified"] is True
    assert code_of(blocked.verify(code)) == "TOKEN_ALREADY_USED"


def test_wrong_code_burns_the_challenge_which_is_replaced_at_once(blocked: Blocked) -> None:
    code = blocked.agent.code()
    assert code_of(blocked.verify(WRONG)) == "TOKEN_INVALID"
    assert code_of(blocked.verify(code)) == "TOKEN_INVALID"
    fresh = blocked.agent.code()
    directive = blocked.agent.report()
    assert directive["stopped"] is True
    assert challenge_of(directive) != blocked.challenge
    assert data(blocked.agent.verify(challenge_of(directive), fresh))["verified"] is True


@pytest.mark.parametrize("hint", [DANGER, TO_VERIFY])
def test_agent_is_told_the_next_challenge_with_the_wrong_code(tenant: Any, hint: str) -> None:
    agent = started(tenant)
    burnt = challenge_of(agent.report(hint))
    refusal = agent.verify(burnt, WRONG)
    assert isinstance(refusal, Failure)
    next_one = refusal.details["verification_id"]
    assert next_one != burnt
    assert challenge_of(agent.report()) == next_one
    assert data(agent.verify(next_one, agent.code()))["verified"] is True


def test_fresh_code_after_many_wrong_ones_is_for_the_challenge_that_was_told_last(blocked: Blocked) -> None:
    challenge = blocked.challenge
    for _ in range(5):
        refusal = blocked.agent.verify(challenge, WRONG)
        assert isinstance(refusal, Failure)
        challenge = refusal.details["verification_id"]
    assert data(blocked.agent.verify(challenge, blocked.agent.code()))["verified"] is True


def test_code_shown_again_makes_the_first_void(blocked: Blocked) -> None:
    first, second = blocked.agent.code(), blocked.agent.code()
    assert first != second
    assert data(blocked.verify(second))["verified"] is True


@pytest.mark.parametrize(("late", "over"), [(-1, False), (0, True), (1, True)])
def test_code_expires_by_the_microsecond(late: int, over: bool) -> None:
    assert is_expired(NOON, NOON + timedelta(microseconds=late)) is over


@pytest.mark.parametrize(("hint", "goes_on"), [(DANGER, False), (TO_VERIFY, True)])
def test_late_code_is_refused_and_the_block_stays_but_a_verify_pause_ends(
    tenant: Any, hint: str, goes_on: bool
) -> None:
    agent = started(tenant)
    challenge = challenge_of(agent.report(hint))
    code = agent.code()
    with tenant_scope(tenant):
        Challenge.objects.update(expires_at=now())
    assert code_of(agent.verify(challenge, code)) == "TOKEN_EXPIRED"
    assert agent.report()["continue"] is goes_on


@pytest.mark.parametrize("challenge", ["", "nonsense", str(uuid4()), "challenge_1_ab", "💥"])
def test_unknown_challenge_looks_like_a_wrong_code(blocked: Blocked, challenge: str) -> None:
    foreign = Agent(blocked.agent.tenant).verify(blocked.challenge, WRONG)
    unknown = blocked.agent.verify(challenge, WRONG)
    own = blocked.verify(WRONG)
    assert foreign == unknown
    assert isinstance(own, Failure)
    assert isinstance(unknown, Failure)
    assert own.code == unknown.code
    assert own.message == unknown.message


def test_challenge_of_another_principal_or_tenant_is_unknown(blocked: Blocked, other_tenant: Any) -> None:
    code = blocked.agent.code()
    thieves = (Agent(blocked.agent.tenant), Agent(other_tenant, ref=blocked.agent.principal.ref))
    assert {code_of(thief.verify(blocked.challenge, code)) for thief in thieves} == {"TOKEN_INVALID"}
    assert data(blocked.verify(code))["verified"] is True


def test_what_waits_for_an_approval_has_no_code(tenant: Any) -> None:
    agent = started(tenant)
    agent.report(TO_CONFIRM)
    with pytest.raises(SilasError, match="no longer needs a code"):
        agent.code()


def test_eleventh_wrong_code_in_a_minute_is_not_looked_at_until_the_lock_is_over(blocked: Blocked) -> None:
    assert blocked.fail(11) == ["TOKEN_INVALID"] * 10 + ["RATE_LIMIT_EXCEEDED"]
    reply = blocked.verify(blocked.agent.code())
    assert code_of(reply) == "RATE_LIMIT_EXCEEDED"
    assert 0 < reply.details["retry_after_seconds"] <= 60
    with tenant_scope(blocked.agent.tenant):
        FailedTries.objects.update(locked_until=now() - timedelta(microseconds=1))
    assert data(blocked.verify(blocked.agent.code()))["verified"] is True


def test_wrong_codes_count_for_the_agent_whoever_gives_them(blocked: Blocked) -> None:
    agent_id = blocked.agent.hold().agent_id
    blocked.verify(WRONG)
    with tenant_scope(blocked.agent.tenant):
        rows = dict(FailedTries.objects.values_list("key", "failures"))
    assert rows == {f"agent:{agent_id}": 1, f"caller:{blocked.agent.principal.ref}": 1}


def test_wrong_and_shown_codes_are_audited(blocked: Blocked) -> None:
    blocked.agent.code()
    blocked.verify(WRONG)
    with tenant_scope(blocked.agent.tenant):
        events = list(AuditEntry.objects.order_by("seq").values_list("event", "actor"))
    assert events[-2:] == [
        ("safety_code_shown", "user:test"),
        ("safety_code_refused", blocked.agent.principal.ref),
    ]


def test_each_lock_is_twice_as_long_up_to_an_hour() -> None:
    tries, waits = Attempts(0, NOON), []
    for _ in range(9):
        moment = tries.locked_until or NOON
        for _ in range(10):
            tries = after_failure(tries, moment)
        waits.append(wait_seconds(tries, moment))
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


def test_slow_mistakes_never_lock() -> None:
    tries = Attempts(0, NOON)
    for minute in range(40):
        tries = after_failure(tries, NOON + timedelta(seconds=7 * minute))
    assert tries.locked_until is None


def test_of_two_who_redeem_at_once_one_succeeds(blocked: Blocked) -> None:
    code = blocked.agent.code()
    replies = race(*[lambda: blocked.verify(code)] * 4)
    assert sorted(type(reply).__name__ for reply in replies) == ["Failure", "Failure", "Failure", "Success"]
    assert {code_of(reply) for reply in replies if not isinstance(reply, Success)} == {"TOKEN_ALREADY_USED"}  # type: ignore[arg-type]


def test_racing_reports_are_counted_one_by_one(tenant: Any) -> None:
    agent = started(tenant)
    directives = race(*[lambda: agent.report()] * 6)
    assert all(each["continue"] for each in directives)  # type: ignore[index]
    with tenant_scope(tenant):
        assert sorted(Step.objects.values_list("seq", flat=True)) == [1, 2, 3, 4, 5, 6]


def test_two_names_that_are_stopped_at_once_share_one_block(tenant: Any) -> None:
    first = started(tenant, "first")
    second = started(tenant, "second", ref=first.principal.ref)
    directives = race(lambda: first.report(DANGER), lambda: second.report(DANGER))
    assert all(each["stopped"] for each in directives)  # type: ignore[index]
    with tenant_scope(tenant):
        assert Hold.objects.filter(kind="block").count() == 1


def test_report_that_races_a_persons_approval_ends_well(tenant: Any) -> None:
    agent = started(tenant)
    agent.report(TO_CONFIRM)
    answers = race(agent.let_go, lambda: agent.report(TO_CONFIRM), lambda: agent.report(DANGER))
    assert not [each for each in answers if isinstance(each, Exception) and not isinstance(each, SilasError)]


def test_first_reports_of_one_agent_at_once_make_one_agent(tenant: Any) -> None:
    agent = Agent(tenant)
    replies = race(*[agent.begin] * 4)
    assert [type(reply) for reply in replies] == [Success] * 4
