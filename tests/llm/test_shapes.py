"""Do the small pure pieces hold what they promise: call blocks, citations, schemas, the structured wrapper, prices?"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from kernel.errors import SilasError
from llm.calls import PlannedCall, call_block, parse_calls
from llm.citations import cite, locate
from llm.enums import Role
from llm.failures import ShapeBroken
from llm.output_repair import fallback_output, run_with_repair
from llm.pricing import Rates, estimate_usage, is_free, price
from llm.runs import Usage
from llm.schemas import AgentResponse, Citation, ExecutorAgentOutput, MemoryOp, RouteDecision
from llm.toolsets import CallLedger
from tests.factories.llm import FEES, HOME_TERMS, briefing

CALL = PlannedCall("refund", {"order": "H-1"})
SCALARS = st.none() | st.booleans() | st.integers() | st.text()


@settings(deadline=None)
@given(st.dictionaries(st.text(), SCALARS | st.lists(SCALARS, max_size=3), max_size=4))
def test_call_block_with_any_argument_is_read_back_as_one_call(args: dict[str, Any]) -> None:
    call = PlannedCall("tool", args)
    assert parse_calls(f"Text\n\n{call_block(call)}\n\nMore") == (call,)


@pytest.mark.parametrize(
    "body",
    [
        "> " + call_block(CALL).replace("\n", "\n> "),
        "- " + call_block(CALL).replace("\n", "\n  "),
        "````\n" + call_block(CALL) + "\n````",
        "<!--\n" + call_block(CALL) + "\n-->",
        call_block(CALL).replace("call", "python"),
        call_block(CALL).replace("call", "call now"),
        "    " + call_block(CALL).replace("\n", "\n    "),
    ],
)
def test_call_block_that_is_quoted_nested_or_commented_is_prose(body: str) -> None:
    assert parse_calls(body) == ()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"tool": "x"}',
        '{"tool": "", "args": {}}',
        '{"tool": "x", "args": {}, "as": "owner"}',
        "{",
        "[" * 9999,
    ],
)
def test_call_block_that_cannot_be_read_is_refused(content: str) -> None:
    with pytest.raises(SilasError) as refused:
        parse_calls(f"```call\n{content}\n```")
    assert refused.value.code == "bad_call_block"


def test_calls_are_read_in_order() -> None:
    other = PlannedCall("other", {})
    assert parse_calls(f"{call_block(other)}\n\n{call_block(CALL)}") == (other, CALL)


def test_citation_offsets_count_bytes() -> None:
    found = cite(FEES, "for each claim.")
    assert FEES.quote.encode()[found.start : found.end].decode() == "for each claim."


def test_citation_of_the_named_document_is_preferred() -> None:
    both = "covered"
    other = cite(FEES, "The").model_copy(update={"quote": both, "document_id": "doc-home"})
    found = locate(other, (HOME_TERMS, FEES))
    assert found is not None
    assert found.document_id == "doc-home"


@pytest.mark.parametrize("quote", ["", "  ", "Meteors are covered.", "the excess is 250"])
def test_citation_that_no_passage_holds_is_nothing(quote: str) -> None:
    assert locate(Citation(quote=quote), (HOME_TERMS, FEES)) is None


@pytest.mark.parametrize(
    "op", [{"op": "store"}, {"op": "update", "content": "x"}, {"op": "delete"}, {"op": "link", "memory_id": "m"}]
)
def test_memory_op_without_what_it_needs_is_refused(op: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MemoryOp.model_validate(op)


def test_agent_response_asks_for_approval_unless_told() -> None:
    assert AgentResponse(message="x").needs_approval


def test_route_planner_with_an_answer_is_refused() -> None:
    with pytest.raises(ValidationError):
        RouteDecision.model_validate(
            {
                "route": "planner",
                "reason": "",
                "interaction_register": "status",
                "interaction_mode": "act_and_report",
                "context_profile": "conversation",
                "response": {"message": "x"},
            }
        )


async def test_structured_run_repairs_once_with_the_error_told() -> None:
    prompts: list[str] = []

    async def attempt(prompt: str) -> str:
        prompts.append(prompt)
        if len(prompts) == 1:
            raise ShapeBroken("reason: Field required")
        return "done"

    result = await run_with_repair("ask", attempt)
    assert result.output == "done"
    assert result.repaired is True
    assert prompts == ["ask", "ask\n\n[SCHEMA VALIDATION ERROR]\nreason: Field required"]


async def test_structured_run_gives_up_after_two_tries() -> None:
    tries: list[str] = []

    async def attempt(prompt: str) -> str:
        tries.append(prompt)
        raise ShapeBroken("no")

    assert (await run_with_repair("ask", attempt)).output is None
    assert len(tries) == 2


def test_fallback_of_a_planner_has_no_plan() -> None:
    answer = fallback_output(Role.PLANNER, context_profile="conversation")
    assert isinstance(answer, AgentResponse)
    assert answer.plan_action is None


async def test_ledger_makes_a_call_of_this_try_each_time() -> None:
    ledger, made = CallLedger(), []

    async def make() -> int:
        made.append(1)
        return len(made)

    assert [await ledger.once("t", {}, make), await ledger.once("t", {}, make)] == [1, 2]


async def test_ledger_hands_each_result_of_an_earlier_try_out_once() -> None:
    ledger = CallLedger()

    async def make() -> str:
        return "new"

    async def old() -> str:
        return "old"

    await ledger.once("t", {"a": 1}, old)
    ledger.begin_try()
    assert [await ledger.once("t", {"a": 1}, make), await ledger.once("t", {"a": 1}, make)] == ["old", "new"]


def test_price_of_a_builtin_model_is_zero() -> None:
    assert price("builtin:grounded", Usage(10**9, 10**9)) == 0


def test_price_keeps_digits_far_below_a_cent() -> None:
    assert price("openai:gpt-4o-mini", Usage(1, 1)) == Decimal("0.000000750")


def test_price_nobody_knows_is_none() -> None:
    assert price("openai:no-such-model", Usage(1, 1)) is None


def test_price_of_an_unknown_provider_is_none() -> None:
    assert price("nowhere:model", Usage(1, 1)) is None


def test_price_by_the_tenants_own_rates_is_exact() -> None:
    rates = Rates(Decimal("0.1"), Decimal("0.3"))
    assert price("openai:mine", Usage(3, 1), rates=rates) == Decimal("0.0000006")


CACHED = Usage(input_tokens=1000, output_tokens=10, cache_read_tokens=400, cache_write_tokens=100)


def test_tokens_of_a_providers_cache_are_part_of_the_input_and_have_their_own_price() -> None:
    assert price("anthropic:claude-sonnet-4-5", CACHED) == Decimal("0.002145")


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        (Rates(Decimal(3), Decimal(15)), "0.00315"),
        (Rates(Decimal(3), Decimal(15), Decimal("0.3")), "0.00207"),
        (Rates(Decimal(3), Decimal(15), Decimal("0.3"), Decimal("3.75")), "0.002145"),
        (Rates(Decimal(3), Decimal(15), Decimal(0), Decimal(0)), "0.00165"),
    ],
)
def test_tenants_own_price_of_the_cache_counts_where_it_has_one(rates: Rates, expected: str) -> None:
    assert price("anthropic:claude-sonnet-4-5", CACHED, rates=rates) == Decimal(expected)


def test_more_cached_than_read_is_no_discount() -> None:
    odd = Usage(input_tokens=10, cache_read_tokens=100)
    assert price("x:y", odd, rates=Rates(Decimal(1), Decimal(1), Decimal(1))) == Decimal("0.0001")


@pytest.mark.parametrize(("model", "free"), [("builtin:grounded", True), ("ollama:any", True), ("openai:x", False)])
def test_only_what_runs_here_is_free(model: str, free: bool) -> None:
    assert is_free(model) is free


def test_price_never_rounds_down() -> None:
    rates = Rates(Decimal("0.0001"), Decimal(0))
    assert price("x:y", Usage(1, 0), rates=rates) == Decimal("0.000000001")


def test_forecast_grows_with_what_is_said() -> None:
    assert estimate_usage(briefing("a")).input_tokens < estimate_usage(briefing("a" * 9000)).input_tokens


@pytest.mark.parametrize(
    ("shape", "fields"),
    [
        (AgentResponse, {"message": "a" * 24_001}),
        (AgentResponse, {"message": "a", "suggestions": ["a" * 1_001]}),
        (ExecutorAgentOutput, {"summary": "a" * 24_001}),
        (ExecutorAgentOutput, {"summary": "a", "next_steps": ["a"] * 21}),
        (ExecutorAgentOutput, {"summary": "a", "artifact_refs": ["a"] * 101}),
    ],
)
def test_endless_answer_is_no_answer(shape: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        shape(**fields)


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_answer_holds_nothing_that_no_row_can_keep(text: str) -> None:
    answer = AgentResponse(message=text, suggestions=[text])
    assert answer.message == "a\ufffdb"
    assert answer.suggestions == ["a\ufffdb"]


def test_quote_stays_byte_for_byte() -> None:
    assert AgentResponse.model_validate({"message": "x", "citations": [{"quote": "a\0b"}]}).citations[0].quote == "a\0b"
