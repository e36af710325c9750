"""Carry out a work item with `builtin:grounded`: the calls of the plan, exactly, in order, until one fails. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kernel.errors import SilasError
from llm.briefing import Briefing
from llm.calls import parse_calls
from llm.offline import results
from llm.offline.moves import CallTool, Move, Say, ToolResult
from llm.schemas import ExecutorAgentOutput


def next_move(briefing: Briefing, done: Sequence[ToolResult], available: Collection[str]) -> Move:
    try:
        calls = parse_calls(briefing.work_body)
    except SilasError as unreadable:
        return _report(done, f"Stopped: {unreadable.message}")
    if done and done[-1].failed:
        return _report(done, f"Stopped at call {len(done)} of {len(calls)}.")
    if len(done) >= len(calls):
        return _report(done, "" if calls else "The plan names no call, so nothing was done.")
    call = calls[len(done)]
    if call.tool not in available:
        return _report(done, f"Stopped: call {len(done) + 1} of {len(calls)} needs a tool that is not available.")
    return CallTool(call.tool, call.args)


def _report(done: Sequence[ToolResult], remark: str) -> Say:
    lines = []
    for result in done:
        outcome = "failed" if result.failed else "ran"
        lines.append(f"{result.tool} {outcome}: {results.describe_result(result.content) or 'no output'}")
    return Say(ExecutorAgentOutput(summary="\n".join(filter(None, (*lines, remark)))))
