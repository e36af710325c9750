"""What does the visitor get when a provider fails, stalls or breaks its shape? Against the fake OpenAI-compatible
server.
"""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.models import override_allow_model_requests

from llm.agents import Limits, Timeouts, run_executor, run_planner, run_proxy
from llm.calls import PlannedCall, call_block
from llm.models import GROUNDED
from tests.factories.llm import CLAIM_STATUS, UPDATE_ADDRESS, RecordingToolset, briefing
from tests.fakes.openai_server import Replies, Reply, direct, final, route_decision, serving
from tests.llm.test_agents_provider import BURST, CLAIM, MODEL, MOVE, NEW_ADDRESS, PATIENT, ask, message

pytestmark = pytest.mark.usefixtures("local_provider")
LONG = "A burst pipe is covered, and so is the damage that the water does to your floor."
BROKEN = final({"route": "direct"})
HASTY = Timeouts(first_token=20.0, between_tokens=0.5, request=60.0)


async def reason(replies: Replies, patience: Timeouts = PATIENT) -> str:
    """The reason for which a run on `replies` fell back; its answer must then be that of builtin:grounded."""
    run, _, _ = await ask(replies, patience)
    assert run.fell_back
    assert run.answered_by == GROUNDED
    assert "burst pipe" in message(run)
    return run.reason


async def test_provider_error_500_falls_back() -> None:
    assert await reason([Reply(status=500)]) == "http_500"


async def test_provider_error_429_falls_back() -> None:
    assert await reason([Reply(status=429)]) == "http_429"


async def test_provider_refusing_the_key_falls_back() -> None:
    assert await reason([Reply(status=401)]) == "http_401"


async def test_provider_error_once_is_tried_again() -> None:
    run, _, fake = await ask([Reply(status=500), direct("Yes.")])
    assert message(run) == "Yes."
    assert run.fell_back is False
    assert len(fake.requests) == 2


async def test_provider_stall_before_the_first_token_falls_back() -> None:
    assert await reason([direct(LONG, stall_after=0)], Timeouts(first_token=0.5)) == "first_token_timeout"


async def test_provider_stall_in_the_stream_falls_back() -> None:
    assert await reason([direct(LONG, stall_after=6)], HASTY) == "stalled"


async def test_provider_dribbling_past_the_request_timeout_falls_back() -> None:
    assert await reason([direct(LONG, pieces=2, between=0.05)], Timeouts(request=1.0)) == "request_timeout"


async def test_provider_slow_but_steady_is_waited_for() -> None:
    run, pieces, _ = await ask(
        [direct(LONG, pieces=30, between=0.1)], Timeouts(first_token=20, between_tokens=5, request=60)
    )
    assert message(run) == LONG
    assert run.fell_back is False
    assert "".join(pieces) == LONG


async def test_provider_connection_cut_falls_back() -> None:
    assert await reason([direct(LONG, cut_after=6)]) == "connection_lost"


async def test_provider_stream_of_garbage_falls_back() -> None:
    assert await reason([Reply(raw=("this is not json",))]) == "provider_error"


@pytest.mark.parametrize("event", ["[]", "null", "1", '"text"'])
async def test_provider_event_of_a_wrong_kind_falls_back(event: str) -> None:
    assert await reason([Reply(raw=(event,))]) == "unreadable_response"


async def test_failure_of_the_screen_is_not_taken_for_the_providers() -> None:
    async def on_delta(_: str) -> None:
        raise ValueError("the socket is gone")

    async with serving([direct("Yes.")]) as fake:
        with pytest.raises(ValueError, match="socket is gone"):
            await run_proxy(MODEL, briefing(BURST), on_delta=on_delta, base_url=fake.base_url)


async def test_failure_of_a_tool_is_not_taken_for_the_providers() -> None:
    def fail(name: str, args: dict[str, Any]) -> Any:
        raise LookupError("nobody knows")

    desk = RecordingToolset(CLAIM_STATUS, answer=fail)
    with pytest.raises(LookupError, match="nobody knows"):
        await ask([Reply(calls=(CLAIM,))], briefing=briefing(BURST, tools=(CLAIM_STATUS,)), toolset=desk.toolset)


async def test_provider_error_event_in_the_stream_falls_back() -> None:
    assert await reason([Reply(raw=('{"error": {"message": "overloaded", "code": "overloaded"}}',))]) != ""


async def test_provider_out_of_reach_falls_back() -> None:
    run = await run_proxy(MODEL, briefing(BURST), base_url="http://127.0.0.1:9/v1", patience=PATIENT)
    assert run.answered_by == GROUNDED
    assert run.reason == "connection_lost"


async def test_provider_without_a_key_falls_back() -> None:
    run = await run_proxy(MODEL, briefing(BURST))
    assert run.answered_by == GROUNDED
    assert run.reason == "no_provider_key"


async def test_provider_that_does_not_exist_falls_back() -> None:
    run = await run_proxy("no-such-provider:model", briefing(BURST), key="k")
    assert run.answered_by == GROUNDED
    assert run.reason == "unknown_model"


async def test_provider_whose_client_is_not_installed_falls_back() -> None:
    run = await run_proxy("groq:llama", briefing(BURST), key="k")
    assert run.answered_by == GROUNDED
    assert run.reason == "provider_not_installed"


async def test_provider_while_requests_are_off_is_refused_loudly() -> None:
    with override_allow_model_requests(False), pytest.raises(RuntimeError, match="not allowed"):
        await run_proxy(MODEL, briefing(BURST), key="k")


async def test_fallback_after_text_was_shown_shows_no_second_text() -> None:
    run, pieces, _ = await ask([direct(LONG, pieces=8, stall_after=24)], HASTY)
    assert run.answered_by == GROUNDED
    assert "".join(pieces) != ""
    assert LONG.startswith("".join(pieces))


async def test_fallback_counts_what_the_provider_was_asked() -> None:
    run, _, _ = await ask([BROKEN, BROKEN])
    assert run.usage.requests == 2
    assert run.usage.input_tokens == 200


async def test_fallback_does_not_run_a_tool_again() -> None:
    desk = RecordingToolset(CLAIM_STATUS)
    told = briefing("What is the status of my claim CLM-2001?", tools=(CLAIM_STATUS,))
    replies = [Reply(calls=(CLAIM,)), direct(LONG, stall_after=0)]
    run, _, _ = await ask(replies, HASTY, briefing=told, toolset=desk.toolset)
    assert desk.calls == [("claim_status", {"claim": "CLM-2001"})]
    assert run.answered_by == GROUNDED
    assert message(run) == "claim_status done."


async def test_model_calling_tools_without_end_falls_back() -> None:
    desk = RecordingToolset(CLAIM_STATUS)
    told = briefing(BURST, tools=(CLAIM_STATUS,))
    run, _, _ = await ask([Reply(calls=(CLAIM,))], briefing=told, toolset=desk.toolset, limits=Limits(requests=3))
    assert run.answered_by == GROUNDED
    assert run.reason == "usage_limit"


async def test_shape_broken_once_is_repaired() -> None:
    run, _, fake = await ask([BROKEN, direct("Yes.")])
    assert message(run) == "Yes."
    assert run.repaired is True
    assert run.fell_back is False
    assert "[SCHEMA VALIDATION ERROR]\nreason: Field required" in fake.requests[1]["messages"][-1]["content"]


async def test_json_broken_once_is_repaired() -> None:
    run, _, _ = await ask([final('{"route": "direct", '), direct("Yes.")])
    assert message(run) == "Yes."
    assert run.repaired is True


async def test_plain_text_instead_of_the_shape_is_repaired() -> None:
    run, pieces, _ = await ask([Reply(text="Sure, all covered!"), direct("Yes.")])
    assert message(run) == "Yes."
    assert "".join(pieces) == "Yes."


async def test_direct_route_without_an_answer_breaks_the_shape() -> None:
    run, _, _ = await ask([final({**route_decision(""), "response": None}), direct("Yes.")])
    assert run.repaired


async def test_unregistered_context_profile_breaks_the_shape() -> None:
    run, _, _ = await ask([final({**route_decision("Yes."), "context_profile": "everything"}), direct("Yes.")])
    assert run.repaired


async def test_more_than_three_memory_queries_break_the_shape() -> None:
    greedy = route_decision("Yes.")
    greedy["response"]["memory_queries"] = [{"strategy": "keyword", "query": "q"}] * 4
    run, _, _ = await ask([final(greedy), direct("Yes.")])
    assert run.repaired


async def test_shape_broken_twice_gives_the_fixed_answer_after_two_tries() -> None:
    run, _, fake = await ask([BROKEN])
    assert len(fake.requests) == 2
    assert run.output.route == "direct"
    assert run.output.interaction_register == "status"
    assert run.answered_by == "harness"
    assert run.reason == "proxy_structured_output_invalid"


async def test_planner_shape_broken_twice_plans_nothing() -> None:
    async with serving([final({"message": ""})]) as fake:
        run = await run_planner(MODEL, briefing("I moved"), base_url=fake.base_url, patience=PATIENT)
    assert run.output.plan_action is None
    assert run.reason == "planner_structured_output_invalid"


async def test_executor_shape_broken_twice_fails_the_try() -> None:
    async with serving([final({"summary": ""})]) as fake:
        run = await run_executor(MODEL, briefing("", work_body="x"), base_url=fake.base_url, patience=PATIENT)
    assert run.last_error == "executor_structured_output_invalid"


async def test_repair_does_not_run_an_executors_call_again() -> None:
    desk = RecordingToolset(UPDATE_ADDRESS)
    told = briefing("", tools=(UPDATE_ADDRESS,), work_body=call_block(PlannedCall("update_address", NEW_ADDRESS)))
    replies = [Reply(calls=(MOVE,)), final({"summary": ""}), Reply(calls=(MOVE,)), final({"summary": "Changed."})]
    async with serving(replies) as fake:
        run = await run_executor(MODEL, told, toolset=desk.toolset, base_url=fake.base_url, patience=PATIENT)
    assert desk.calls == [("update_address", NEW_ADDRESS)]
    assert run.output.summary == "Changed."
    assert run.repaired is True
