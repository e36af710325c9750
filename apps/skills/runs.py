"""Run a skill's tool. The handler of `run_skill`: arguments are validated, the records of one customer are mounted, the
script runs in a sandbox, and its changes are applied when the call settles.

Only the guard calls it, with no transaction open. The script sees nothing but its skill, the declared books of the
verified customer and the call; it can only ask for changes, and they are checked against what the tool may write.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping

from apps.guard.schemas import CallContext, CallFailed, HandlerResult
from apps.skills import argv, executors, queries, rules, script_library
from apps.skills.ports import OpenedAccount, library, open_credentials, store_credentials
from apps.skills.queries import Runnable
from apps.skills.schemas import Change
from apps.skills.services import apply_changes
from kernel.canonical import canonical_bytes
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from kernel.unicode_safety import replace_unstorable
from sandbox import SandboxResult, SandboxSpec, run

CHANGES = "changes.json"
MAX_RESULT_CHARS = 20_000
# A script must not see the checks and guards that judge its own work.
HIDDEN_FOLDERS = ("skill/checks", "skill/guards")


def run_skill(ctx: CallContext) -> HandlerResult:
    """Run the tool once.

    `ctx.context`: `skills` (the references the caller works under), `customer` (the verified one's id, or "") and
    `inputs` (files of earlier work, by name). `house`: a goal of the tenant's own looks for something to do; a reading
    tool then sees every record of its books, an acting one does not run.

    Every failure is coded and effect-free, because records change only in the settlement. The exception is a tool that
    acts on an outside account, or runs code that reaches hosts: what it did there before it failed is unknown, unless
    the tool says that it refused.
    """
    customer = str(ctx.context.get("customer") or "")
    runnable = _load(ctx, customer)
    args = argv.with_defaults(ctx.args, runnable.script_args)
    problem = rules.argument_problem(runnable.tool, args) or argv.argument_problem(args, runnable.script_args)
    if problem:
        raise _failed("bad_arguments", problem)
    opened = open_credentials(ctx, runnable.tool) if runnable.tool.connection else None
    documents = library().shelf(ctx) if runnable.tool.knowledge else {}
    outcome = _run(runnable, ctx, customer, args, opened, documents)
    if opened and outcome.secret_out:
        store_credentials(ctx, opened.account, outcome.secret_out)
    try:
        value, changes = _parse_outcome(runnable, outcome, customer)
    except CallFailed as failure:
        raise _with_effect(failure, runnable) from failure
    if runnable.tool.acting and runnable.tool.knowledge:
        value |= library().editor(ctx)
    left = {name: content for name, content in outcome.artifacts.items() if name != CHANGES}
    if left and runnable.tool.acting:
        value["_artifacts"] = {name: base64.b64encode(content).decode() for name, content in left.items()}
    return HandlerResult(value, on_settle=_effect(changes, customer, ctx) if changes else None)


def _load(ctx: CallContext, customer: str) -> Runnable:
    refs = [str(ref) for ref in ctx.context.get("skills") or ()]
    try:
        with tenant_scope(ctx.tenant_id):
            runnable = queries.load_runnable(ctx.tool, refs, customer, house=bool(ctx.context.get("house")))
    except SilasError as refusal:
        raise _failed(refusal.code, refusal.message) from refusal
    if runnable is None:
        raise _failed("tool_missing", "There is no such tool here.")
    if runnable.tool.acting and ctx.context.get("house"):
        raise _failed("tool_missing", "There is no such tool here.")
    if runnable.tool.acting and runnable.tool.skill not in refs:
        raise _failed("skill_not_pinned", "An acting tool runs only in the version that was approved.")
    return runnable


def _run(
    runnable: Runnable,
    ctx: CallContext,
    customer: str,
    args: Mapping[str, object],
    opened: OpenedAccount | None,
    documents: Mapping[str, bytes],
) -> SandboxResult:
    call = {
        "tool": ctx.tool,
        "args": dict(args),
        "customer": customer,
        "effect_key": ctx.effect_key,
        "now": now().isoformat(),
    }
    # Files of earlier work, mounted at `/sandbox/inputs/`; without any, there is no such folder.
    inputs = ctx.context.get("inputs")
    executor, script_args = runnable.tool.executor, runnable.script_args if runnable.is_plain else None
    spec = SandboxSpec(
        executors.command_line(executor, args)
        if executor
        else argv.command_line(runnable.tool.script, args, script_args),
        work={"call.json": canonical_bytes(call)},
        read_only={
            **script_library.mounts(runnable.folder),
            **(executors.files(executor, args) if executor else {}),
            "records": queries.as_files(runnable.rows),
            **({"knowledge": documents} if documents else {}),
            **({"inputs": inputs} if inputs else {}),
        },
        env=opened.env if opened else {},
        hidden=HIDDEN_FOLDERS,
        timeout_seconds=runnable.tool.timeout,
        egress=opened.egress if opened else runnable.egress,
        secret=opened.secret if opened else None,
    )
    try:
        outcome = run(spec)
    except SilasError as refusal:
        raise _failed(refusal.code, refusal.message) from refusal
    return outcome


def _parse_outcome(
    runnable: Runnable, outcome: SandboxResult, customer: str
) -> tuple[dict[str, object], tuple[Change, ...]]:
    if outcome.reason:
        raise _failed(f"script_{outcome.reason}", "The tool exceeded its limits and was stopped.")
    value = _output_of(outcome) if runnable.tool.executor else _parse_value(outcome, plain=runnable.is_plain)
    return value, _parse_changes(runnable, outcome, customer)


def _with_effect(failure: CallFailed, runnable: Runnable) -> CallFailed:
    tool = runnable.tool
    by_account = tool.acting and tool.connection and failure.code != "refused_by_tool"
    reached_out = by_account or (tool.executor and runnable.egress)
    return CallFailed(failure.code, failure.reason, effect_free=not reached_out)


def _output_of(outcome: SandboxResult) -> dict[str, object]:
    """The output of approved code, as text: nothing in it is an answer, a refusal or a sentence for the visitor."""
    if outcome.exit_code != 0:
        raise _failed("script_failed", "The code ended with an error.")
    output = replace_unstorable(outcome.stdout)
    cut = (
        {"cut": f"The first {MAX_RESULT_CHARS} of {len(output)} characters."} if len(output) > MAX_RESULT_CHARS else {}
    )
    return {"output": output[:MAX_RESULT_CHARS], **cut}


def _parse_value(outcome: SandboxResult, *, plain: bool = False) -> dict[str, object]:
    """Read the one JSON object that a script prints; `{"refused": "a sentence"}` is its way to refuse. A `plain` script
    prints what it likes."""
    try:
        value = json.loads(outcome.stdout)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and isinstance(value.get("refused"), str):
        raise _failed("refused_by_tool", value["refused"][:300])
    if outcome.exit_code != 0:
        raise _failed("script_failed", "The tool ended with an error.")
    if plain and not isinstance(value, dict):
        value = {"output": outcome.stdout.strip()}
    if not isinstance(value, dict) or len(outcome.stdout) > MAX_RESULT_CHARS:
        raise _failed("garbage_output", "The tool's answer can't be read.")
    return {str(name): item for name, item in value.items() if not str(name).startswith("_")}


def _parse_changes(runnable: Runnable, outcome: SandboxResult, customer: str) -> tuple[Change, ...]:
    raw = outcome.artifacts.get(CHANGES)
    if raw is None:
        return ()
    try:
        return rules.parse_changes(raw, runnable.tool, customer)
    except (ValueError, RecursionError) as error:
        raise _failed("forbidden_change", f"The tool asked for a change that isn't allowed: {error}.") from error


def _effect(changes: tuple[Change, ...], customer: str, ctx: CallContext) -> Callable[[], None]:
    expected, left = ctx.context.get("expected"), ctx.context.get("left")
    return lambda: apply_changes(changes, customer=customer, effect_key=ctx.effect_key, expected=expected, left=left)


def _failed(code: str, reason: str) -> CallFailed:
    return CallFailed(code, reason, effect_free=True)
