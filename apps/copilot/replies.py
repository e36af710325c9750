"""Draft a reply from the documents, and show what the bot would do. Both ask the chatbot's own model as a turn does.

Passages are searched at the level that the conversation has reached. A suggestion is told of no tool. A preview is told
of the tools of that level, and a call of one ends it: nothing is carried out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apps.copilot.enums import AssistanceKind
from apps.copilot.instructions import SUGGEST_RULES, prompt_of
from apps.copilot.runs import Job, call_model
from apps.copilot.schemas import Draft, PlannedTool, Source
from apps.gates.content import DOCUMENT, check_content
from apps.guard import services as guard
from apps.guard.enums import Intent
from apps.knowledge.queries import join_neighbours, search_async
from apps.sessions.queries import Said
from apps.sessions.steps.answer import CONSTITUTION
from apps.sessions.steps.context import PASSAGES
from apps.sessions.steps.tools import brief, withheld_tools
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.taint import Taint
from kernel.tenancy import in_scope
from llm import agents, loading, pricing
from llm.briefing import Briefing, HistoryMessage, Passage, ToolBrief
from llm.enums import Role
from llm.runs import AgentRun, Usage
from llm.schemas import AgentResponse, RouteDecision

if TYPE_CHECKING:
    from pydantic_ai.toolsets import AbstractToolset

# With how many of the newest messages the model answers.
HISTORY = 30
# Reasons of the built-in model for an answer that says nothing.
_SAYS_NOTHING = frozenset({"unknown", "not_understood"})
_LONGEST_ARGUMENT = 200


async def suggest(job: Job) -> Draft:
    """Raises 409 `assistance_nothing` where no source and no model has an answer."""
    message = job.readable_message()
    passages = await _passages(job, message)
    run = await _answer(job, _briefing(job, message, passages, rules=SUGGEST_RULES))
    response = run.output.response
    if response is None or run.output.reason in _SAYS_NOTHING:
        text = gettext("None of your documents answers this. Write the reply yourself, or add a document.")
        raise SilasError(ErrorCode.ASSISTANCE_NOTHING, text)
    return _draft(job, run, response, passages, AssistanceKind.SUGGEST)


async def preview(job: Job) -> Draft:
    message = job.readable_message()
    passages = await _passages(job, message)
    allowed = job.access.allowed_tools()
    tools = tuple(brief(tool) for tool in job.policy.tools if tool.name in allowed)
    await loading.loaded()  # before the toolset, which is made of it
    run = await _answer(job, _briefing(job, message, passages, tools=tools), toolset=_never_called(tools))
    acting = {tool.name for tool in tools if tool.acting}
    planned = tuple(PlannedTool(call.tool, _arguments(call.args), call.tool in acting) for call in run.requested)
    draft = _draft(job, run, run.output.response, passages, AssistanceKind.BOT_PREVIEW)
    return Draft(**{**vars(draft), "tools": planned})


def _draft(
    job: Job,
    run: AgentRun[RouteDecision],
    response: AgentResponse | None,
    passages: tuple[Passage, ...],
    kind: AssistanceKind,
) -> Draft:
    return Draft(
        text=response.message if response else "",
        sources=tuple(Source(one.title, one.quote, one.url) for one in response.citations) if response else (),
        hands_over=bool(response and response.handoff),
        model_name=run.answered_by,
        fell_back=run.reason if run.fell_back else "",
        prompt=prompt_of(kind) if run.answered_by == job.model and job.has_model else "",
        passages=passages,
        seqs=tuple(one.seq for one in job.said[-HISTORY:]),
        marked=any(
            check_content([one.title, one.quote], job.policy.gates, kind=DOCUMENT, ref=one.version_id)
            for one in passages
        ),
    )


async def _passages(job: Job, message: Said) -> tuple[Passage, ...]:
    levels = job.access.reached_levels()
    found = await search_async(job.tenant_id, message.shown, levels=levels, k=PASSAGES, run=job.run)
    return await in_scope(job.tenant_id, join_neighbours, found)


def _briefing(
    job: Job,
    message: Said,
    passages: tuple[Passage, ...],
    *,
    rules: tuple[str, ...] = (),
    tools: tuple[ToolBrief, ...] = (),
) -> Briefing:
    others = [one for one in job.said[-HISTORY:] if one.seq != message.seq]
    return Briefing(
        role=Role.PROXY,
        text=message.shown,
        title=job.session.deployment.title,
        greeting=job.settings.greeting,
        persona="\n".join(filter(None, (job.settings.persona, job.tone.text if job.tone else ""))),
        constitution=(*CONSTITUTION, *rules),
        level=job.access.grant.level,
        history=tuple(HistoryMessage(one.sender, one.shown, Taint(one.taint)) for one in others),
        passages=passages,
        tools=tools,
        withheld=withheld_tools(job.policy, job.access) if not rules else (),
        suggestions=job.settings.suggestions,
        today=now().date().isoformat(),
        reference=str(job.assistance_id),
    )


async def _answer(
    job: Job, briefing: Briefing, *, toolset: AbstractToolset[Any] | None = None
) -> AgentRun[RouteDecision]:
    async def ask() -> tuple[AgentRun[RouteDecision], Usage]:
        answered = await agents.run_proxy(job.model, briefing, toolset=toolset, key=job.key)
        return answered, answered.usage

    run = await call_model(job, ask, pricing.estimate_usage(briefing))
    for tool in run.wishes:
        await in_scope(job.tenant_id, guard.record_unoffered_tool, job.run, Intent.RUN_SKILL, tool)
    return run


def _never_called(tools: tuple[ToolBrief, ...]) -> AbstractToolset[Any]:
    """A toolset whose calls end the run: they come back as requests."""
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import ExternalToolset

    return ExternalToolset(
        [
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters))
            for tool in tools
        ]
    )


def _arguments(args: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)[:_LONGEST_ARGUMENT]) for name, value in sorted(args.items()))
