"""Is a card refused that does not say what a person must know, or shows something else than it binds?"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from apps.approvals.cards import kinds
from apps.approvals.cards.schemas import Fact
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, Pace, Risk
from apps.approvals.models import Card, CardTiming
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.approvals import put
from tests.factories.cards import EXAMPLES, MAIL, example, make_kind

KINDS = list(CardKind)
ROOT = Path(__file__).resolve().parents[2]


def refusal(tenant: Any, kind: CardKind = CardKind.GATE, **fields: Any) -> SilasError:
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        put(example(kind, **fields))
    return refused.value


def changed(kind: CardKind, part: str, **fields: Any) -> dict[str, Any]:
    return {part: {**example(kind).get(part, {}), **fields}}


def test_every_kind_has_its_example_and_its_place_in_the_table() -> None:
    assert set(KINDS) == set(EXAMPLES) == set(kinds.KINDS)


def test_every_scope_can_be_asked_for() -> None:
    assert set(ApprovalScope) == {scope for kind in kinds.KINDS.values() for scope in kind.scopes}


def _opened() -> set[tuple[str, str]]:
    """Kind and scope of every call of `open_card` in product code, as written there."""
    trees = [ast.parse(path.read_text()) for path in (ROOT / "apps").rglob("*.py") if "migrations" not in path.parts]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    # Work has a function of the same name, whose call has no binding.
    opening = [
        call
        for call in calls
        if getattr(call.func, "id", getattr(call.func, "attr", "")) == "open_card"
        and any(keyword.arg == "binding" for keyword in call.keywords)
    ]
    bindings = {call: next(each.value for each in call.keywords if each.arg == "binding") for call in opening}
    return {
        (call.args[0].attr, binding.args[0].attr)
        for call, binding in bindings.items()
        if isinstance(binding, ast.Call)
        and isinstance(call.args[0], ast.Attribute)
        and isinstance(binding.args[0], ast.Attribute)
    }


def test_every_kind_with_each_of_its_scopes_is_opened_by_product_code() -> None:
    assert _opened() == {(kind.name, scope.name) for kind, about in kinds.KINDS.items() for scope in about.scopes}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_said_no_to(kind: CardKind) -> None:
    choices = kinds.get_kind(kind).all_choices(EXAMPLES[kind]()["payload"])
    assert [each.verdict for each in choices if each.value == kinds.DECLINE] == [ApprovalVerdict.DECLINED]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not CardKind.POST_EXECUTION])
def test_no_stands_last(kind: CardKind) -> None:
    assert kinds.get_kind(kind).all_choices(EXAMPLES[kind]()["payload"])[-1].value == kinds.DECLINE


def test_leaving_what_ran_alone_stands_first() -> None:
    assert kinds.get_kind(CardKind.POST_EXECUTION).all_choices({})[0].value == kinds.DECLINE


@pytest.mark.parametrize("kind", KINDS)
def test_card_of_every_kind_opens(tenant: Any, kind: CardKind) -> None:
    assert make_kind(tenant, kind).is_open


RUNGS = {
    CardKind.PLAN: Risk.MEDIUM,
    CardKind.STANDING: Risk.HIGH,
    CardKind.GATE: Risk.LOW,
    CardKind.BATCH_REVIEW: Risk.MEDIUM,
    CardKind.DRAFT_REVIEW: Risk.MEDIUM,
    CardKind.AUTONOMY_THRESHOLD: Risk.HIGH,
    CardKind.POST_EXECUTION: Risk.LOW,
    CardKind.SKILL_INSTALL: Risk.MEDIUM,
    CardKind.CONNECTION: Risk.MEDIUM,
    CardKind.PERMISSION_ESCALATION: Risk.MEDIUM,
}


@pytest.mark.parametrize("kind", RUNGS)
def test_rung_of_a_kind_is_that_of_the_specification(tenant: Any, kind: CardKind) -> None:
    assert make_kind(tenant, kind).risk == RUNGS[kind]


def test_connection_that_writes_is_graver_than_one_that_reads(tenant: Any) -> None:
    payload = {**EXAMPLES[CardKind.CONNECTION]()["payload"], "after": ["Mail.ReadWrite"]}
    assert make_kind(tenant, CardKind.CONNECTION, payload=payload).risk == Risk.HIGH


def test_card_that_destroys_for_good_is_irreversible(tenant: Any) -> None:
    assert make_kind(tenant, CardKind.GATE, destroys=True, reversible=False).risk == Risk.IRREVERSIBLE


@pytest.mark.parametrize("kind", ["", "approve_everything", "PLAN"])
def test_card_of_a_forged_kind_is_refused(tenant: Any, kind: Any) -> None:
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        put({**example(CardKind.GATE), "kind": kind})
    assert refused.value.code == "card_kind_unknown"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("field", ["intent", "rationale"])
@pytest.mark.parametrize("words", ["", " \n "])
def test_card_without_its_words_is_refused(tenant: Any, kind: CardKind, field: str, words: str) -> None:
    refused = refusal(tenant, kind, **{field: words})
    assert refused.code == "card_incomplete"
    assert field in refused.extra["fields"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", ["", "OK", "yes!", " Submit "])
def test_card_whose_no_says_nothing_is_refused(tenant: Any, kind: CardKind, words: str) -> None:
    refused = refusal(tenant, kind, **changed(kind, "consequence", decline=words))
    assert refused.code == "card_incomplete"
    assert refused.extra["fields"] == ["consequence.decline"]


def test_card_without_a_consequence_for_its_approval_is_refused(tenant: Any) -> None:
    assert refusal(tenant, consequence={"decline": "No refund"}).extra["fields"] == ["consequence.approve"]


def test_batch_without_what_it_affects_is_refused(tenant: Any) -> None:
    assert refusal(tenant, CardKind.BATCH_REVIEW, affected="").extra["fields"] == ["affected"]


@pytest.mark.parametrize("kind", KINDS)
def test_card_that_asks_for_a_foreign_scope_is_refused(tenant: Any, kind: CardKind) -> None:
    foreign = next(scope for scope in ApprovalScope if scope not in kinds.KINDS[kind].scopes)
    assert refusal(tenant, kind, scope=foreign).code == "card_scope_unfit"


@pytest.mark.parametrize("kind", KINDS)
def test_card_with_another_payload_is_refused(tenant: Any, kind: CardKind) -> None:
    assert refusal(tenant, kind, payload={"say": "anything"}).code == "card_payload_unfit"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not CardKind.STANDING])
def test_card_with_something_more_in_its_payload_is_refused(tenant: Any, kind: CardKind) -> None:
    code = refusal(tenant, kind, **changed(kind, "payload", hidden="delete everything")).code
    assert code in ("card_payload_unfit", "payload_shape")


@pytest.mark.parametrize("kind", KINDS)
def test_card_that_shows_what_its_kind_does_not_know_is_refused(tenant: Any, kind: CardKind) -> None:
    assert refusal(tenant, kind, **changed(kind, "body", banner="trust me")).code == "card_body_unfit"


def test_batch_that_lists_other_items_than_it_binds_is_refused(tenant: Any) -> None:
    items = EXAMPLES[CardKind.BATCH_REVIEW]()["body"]["items"]
    refused = refusal(tenant, CardKind.BATCH_REVIEW, body={"items": items[::-1]})
    assert refused.code == "card_body_unfit"
    assert refused.extra["fields"] == ["items"]


def test_draft_that_is_not_the_one_sent_is_refused(tenant: Any) -> None:
    refused = refusal(tenant, CardKind.DRAFT_REVIEW, **changed(CardKind.DRAFT_REVIEW, "body", draft=MAIL + "!"))
    assert refused.code == "card_body_unfit"
    assert refused.extra["fields"] == ["draft"]


def test_option_that_poses_as_the_approval_is_refused(tenant: Any) -> None:
    options = [{"label": "Fine", "value": "approve"}]
    refused = refusal(tenant, CardKind.DECISION, **changed(CardKind.DECISION, "payload", options=options))
    assert refused.code == "card_payload_unfit"


GIANT = {
    "intent": {"intent": "x" * 301},
    "rationale": {"rationale": "x" * 2001},
    "affected": {"affected": "x" * 301},
    "consequence.decline": {"consequence": {"approve": "Refund it", "decline": "x" * 161}},
    "facts": {"facts": [Fact("Address", text="x" * 20_001)]},
    "details": {"details": {"plan": "x" * 400_001}},
}


@pytest.mark.parametrize("field", GIANT)
def test_giant_text_is_refused(tenant: Any, field: str) -> None:
    refused = refusal(tenant, **GIANT[field])
    assert refused.code == "card_too_long"
    assert refused.extra["fields"] == [field]


def test_too_many_facts_are_refused(tenant: Any) -> None:
    assert refusal(tenant, facts=[Fact("Line", text="x")] * 201).code == "card_too_long"


@pytest.mark.parametrize("character", ["\u202e", "\u200b", "\u2066", "\x00"])
@pytest.mark.parametrize("field", ["intent", "affected"])
def test_text_that_looks_different_from_what_it_is_is_refused(tenant: Any, field: str, character: str) -> None:
    assert refusal(tenant, **{field: f"Refund {character} all"}).code == "card_unreadable"


def test_button_that_looks_different_from_what_it_is_is_refused(tenant: Any) -> None:
    words = {"approve": "Refund \u202e", "decline": "No refund"}
    assert refusal(tenant, consequence=words).extra["fields"] == ["consequence.approve"]


def test_intent_of_two_lines_stands_on_one(tenant: Any) -> None:
    assert make_kind(tenant, CardKind.GATE, intent="Refund it\nand  more").intent == "Refund it and more"


def test_refused_card_leaves_nothing(tenant: Any) -> None:
    refusal(tenant, intent="")
    with tenant_scope(tenant):
        assert not Card.objects.exists()


def test_refusal_names_fields_and_never_their_content(tenant: Any) -> None:
    refused = refusal(tenant, payload={"tool": "secret-tool"})
    assert "secret-tool" not in f"{refused.message}{refused.extra}"


def _patience(card: Card) -> float:
    return (card.expires_at - card.created_at).total_seconds()


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [(CardKind.PLAN, 300), (CardKind.GATE, 120), (CardKind.SUGGESTION, 86_400), (CardKind.CONNECTION_FAILURE, 86_400)],
)
def test_card_waits_as_long_as_its_pace_says(tenant: Any, kind: CardKind, seconds: int) -> None:
    assert _patience(make_kind(tenant, kind)) == seconds


def _set_timing(tenant: Any, seconds: int, **where: Any) -> None:
    with tenant_scope(tenant):
        CardTiming.objects.create(pace=Pace.PLAN, seconds=seconds, **where)


def test_card_waits_as_long_as_its_tenant_says(tenant: Any) -> None:
    _set_timing(tenant, 900)
    assert _patience(make_kind(tenant, CardKind.PLAN)) == 900


def test_card_waits_as_long_as_its_deployment_says(tenant: Any, deployment: Any) -> None:
    _set_timing(tenant, 900)
    _set_timing(tenant, 600, deployment=deployment)
    assert _patience(make_kind(tenant, CardKind.PLAN, deployment_id=deployment.pk)) == 600


def test_timing_of_another_tenant_does_not_count(tenant: Any, other_tenant: Any) -> None:
    _set_timing(other_tenant, 900)
    assert _patience(make_kind(tenant, CardKind.PLAN)) == 300
