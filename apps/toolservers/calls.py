"""Call an outside tool. The handler of `call_mcp_tool`.

Only the guard calls it, with no transaction open. A tool is called only as it was accepted: in use, on its present
terms, with arguments that fit its schema, and still described by its server as a person read it. Its answer is
untrusted: it is cleaned, cut, stripped of our own secret, and marked `external`.
"""

from __future__ import annotations

from collections.abc import Mapping

from apps.guard.schemas import ZERO, CallContext, CallFailed, HandlerResult
from apps.toolservers import queries, rules, services
from apps.toolservers.loading import load_client
from apps.toolservers.schemas import Address, RemoteTool, Reply, ServerFailed
from apps.toolservers.server_refresh import failure_message
from kernel.errors import SilasError
from kernel.taint import Taint
from kernel.tenancy import in_scope

_SUSPENDS = frozenset({"tool_changed", "tool_gone"})


async def call_tool(ctx: CallContext) -> HandlerResult:
    """Call the tool and return its cleaned answer.

    `ctx.context`: `skills` (the references the caller works under), `house` where no person answers for an action. A
    failure before the server was called is effect-free and costs nothing; after that the estimate is charged, and an
    action counts as possibly done.
    """
    client = load_client()
    tool, address = await in_scope(ctx.tenant_id, _load, ctx)
    _require_arguments(tool, ctx.args)
    try:
        reply = await client.call_tool(address, tool.name, ctx.args, digest=tool.digest, seconds=tool.timeout)
    except ServerFailed as failure:
        await in_scope(ctx.tenant_id, _record_failure, tool, failure)
        raise _call_failed(failure.code, failure_message(failure.code), asked=failure.asked) from None
    value = format_reply(reply, tool.server, address.secret)
    if reply.is_error:
        message = str(value.get("text") or "It gave no reason.")[:300]
        raise _call_failed("tool_error", f"The tool server answered with an error: {message}", asked=True)
    return HandlerResult(value, cost=None)


def format_reply(reply: Reply, server: str, secret: str) -> dict[str, object]:
    """Return the answer as models and people get it."""
    raw = "\n\n".join(reply.texts)
    # Cleaned first: markup within the secret would hide it.
    text = rules.redact(secret, rules.clean(raw))
    value: dict[str, object] = {"from": server, "taint": Taint.EXTERNAL.value, "text": text[: rules.MOST_ANSWER_CHARS]}
    if len(text) > rules.MOST_ANSWER_CHARS or len(raw) > rules.MOST_READ_CHARS:
        value["cut"] = True
    if reply.data is not None and not text:
        value["data"] = _clean_data(reply.data, secret)
    if reply.left_out:
        value["left_out"] = reply.left_out
    return value


def _clean_data(data: object, secret: str) -> object:
    """Return structured content, which is used where there is no text; None when it is too large."""
    if len(str(data)) > rules.MOST_READ_CHARS:
        return None
    clean = rules.redact_value(secret, rules.clean_value(data))
    return clean if len(str(clean)) <= rules.MOST_ANSWER_CHARS else None


def _load(ctx: CallContext) -> tuple[RemoteTool, Address]:
    refs = [str(ref) for ref in ctx.context.get("skills") or () if rules.is_reference(str(ref))]
    try:
        tool = queries.find_tool(ctx.tool, refs)
        if tool is None:
            raise _call_failed(
                "tool_missing", "This tool does not exist here, or it is suspended until it is reviewed."
            )
        if tool.acting and (ctx.context.get("house") or tool.ref not in refs):
            raise _call_failed("tool_missing", "An acting tool runs only as it was approved.")
        if tool.acting and ctx.effect_key == str(ctx.call_id):  # admitted when it was still said to read only
            raise _call_failed("approval_required", "This tool now makes changes, so it needs an approval first.")
        return tool, queries.address_of(tool.server_id)
    except SilasError as refusal:
        raise _call_failed(refusal.code, refusal.message) from refusal


def _require_arguments(tool: RemoteTool, args: Mapping[str, object]) -> None:
    from jsonschema import Draft202012Validator

    error = next(iter(Draft202012Validator(tool.schema).iter_errors(dict(args))), None)
    if error is not None:
        raise _call_failed("bad_arguments", error.message[:200])


def _record_failure(tool: RemoteTool, failure: ServerFailed) -> None:
    if failure.code in _SUSPENDS:
        services.record_descriptor(tool.tool_id, failure.seen)
    else:
        services.record_failure(tool.server_id, failure.code)


def _call_failed(code: str, reason: str, *, asked: bool = False) -> CallFailed:
    return CallFailed(code, reason, effect_free=not asked, cost=None if asked else ZERO)
