"""Handle the guard's `retrieve_chunks`: search the tenant's knowledge at the levels of the caller's context.

Only the guard calls the handler; `register` is called once, when Django is ready.
"""

from __future__ import annotations

from dataclasses import asdict

from apps.guard.enums import Intent, Phase
from apps.guard.registry import register as register_handler
from apps.guard.schemas import CallContext, CallFailed, HandlerResult, RunRef
from apps.knowledge import queries

PASSAGES = 4


def register() -> None:
    register_handler(Intent.RETRIEVE_CHUNKS, retrieve_chunks)


async def retrieve_chunks(ctx: CallContext) -> HandlerResult:
    """`args["query"]` → `{"passages": [...]}`, each with the fields of `Passage`. Without levels nothing is found.

    A caller whose texts may not leave as they are, or who may ask no model yet, gets the built-in search.
    """
    question = ctx.args.get("query")
    if not isinstance(question, str):
        raise CallFailed("invalid_arguments", "The search needs a text to look for.", effect_free=True)
    levels = tuple(ctx.context.get("levels", ()))
    run = RunRef(ctx.tenant_id, ctx.run_id)
    passages = await queries.search_async(
        ctx.tenant_id, question, levels=levels, k=PASSAGES, run=run, ask_providers=_may_ask_providers(ctx)
    )
    return HandlerResult({"passages": [asdict(passage) for passage in passages]})


def _may_ask_providers(ctx: CallContext) -> bool:
    """A session says its egress and phase; in the phase before its analysis the guard admits no model."""
    egress, phase = str(ctx.context.get("egress", "full")), str(ctx.context.get("phase", ""))
    return egress == "full" and phase != Phase.INTAKE
