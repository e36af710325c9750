"""How does a session reach anything? One guarded call after the other, through this and nothing else.

A brake ends the session (`Braked`) and passes every `except` on its way to the one handler that ends it; any other
refusal or failure is an answer, with which the session goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_ai.usage import RunUsage

from apps.autonomy import rules
from apps.autonomy.jobs import LEVELS, Job
from apps.autonomy.services.limit_warnings import warn_if_near_limit
from apps.bus.schemas import LeaseLost
from apps.gates.content import LEFT, check_content
from apps.gates.schemas import GateSpec
from apps.guard import services as guard
from apps.guard.enums import Intent, Phase, RefusalCode
from apps.guard.schemas import Admitted, Call, CallOutcome, Done, Failed, NeedsApproval, Refused
from apps.guard.toolset import brought_by
from kernel.llm import asking
from kernel.llm.asking import Inquiry
from kernel.llm.failures import ProviderFailed, ShapeBroken
from kernel.llm.runs import Usage
from kernel.provenance import Origin, Source, Sources, Traced, as_text
from kernel.tenancy import in_scope

T = TypeVar("T", bound=BaseModel)
# A gate wants a person to look at a call first.
REVIEW_REQUIRED = "review_required"


class Braked(BaseException):
    """The guard ended the run. No `except Exception` on the way may swallow it."""

    def __init__(self, code: RefusalCode) -> None:
        super().__init__(code.value)
        self.code = code


class TooLarge(Exception):
    """The model run does not fit into what is left of a limit; a smaller one may."""

    def __init__(self, code: RefusalCode) -> None:
        super().__init__(code.value)
        self.code = code


@dataclass
class GuardedClient:
    """One session's way to the guard. `refused` counts what was refused or failed, by code; `brought` is what its calls
    have shown to whoever plans the next."""

    job: Job
    phase: Phase = Phase.INTAKE
    refused: dict[str, int] = field(default_factory=dict)
    warned: bool = False
    brought: list[Source] = field(default_factory=list)

    async def call(
        self,
        intent: Intent,
        tool: str,
        args: Mapping[str, Any],
        *,
        estimate: Decimal | None = None,
        leaves: bool = False,
        outside: bool = False,
        gates: tuple[GateSpec, ...] = (),
        **context: Any,
    ) -> CallOutcome:
        """`gates` are asked about this call; one that wants a person refuses it, because no session waits for one.
        `leaves` and `outside`: as of `OfferedTool`.
        Raises `Braked`, and `LeaseLost` when somebody else has taken the session over."""
        job = self.job
        known: dict[str, Any] = {
            "session": str(job.session_id),
            "task": job.task_name,
            "deployment": str(job.deployment_id),
        }
        known |= {"phase": self.phase.value, "levels": LEVELS, "skills": job.skills, "customer": "", "house": True}
        access, patience = frozenset({tool}), self._patience()
        call = Call(
            tool=tool,
            args=args,
            access=access,
            estimate=estimate,
            patience_seconds=patience,
            gates=(*job.gates, *gates),
            leaves=leaves,
            shown=self._shown(),
        )
        outcome = await guard.guarded_call(job.run, intent, call, context={**known, **context})
        if isinstance(outcome, Done):
            self.brought.append(brought_by(intent, outcome.value, leaves=leaves, outside=outside, args=args))
        await self._warned()
        return self._heard(outcome)

    async def look_at_context(self) -> None:
        """What another session left for this one is looked at before a model reads it."""
        job = self.job
        mark = await asyncio.to_thread(check_content, job.context, job.gates, kind=LEFT, ref=str(job.session_id))
        if mark is not None:
            await in_scope(job.tenant_id, guard.keep_mark, job.run, mark)

    async def value(self, intent: Intent, tool: str, args: Mapping[str, Any], **context: Any) -> dict[str, Any]:
        """What the call brought; {} when it was refused or failed."""
        outcome = await self.call(intent, tool, args, **context)
        return dict(outcome.value) if isinstance(outcome, Done) else {}

    async def refuse(self, tool: str) -> None:
        """A model wished for a tool that it was not offered."""
        self._count(RefusalCode.TOOL_NOT_GRANTED.value)
        await in_scope(self.job.tenant_id, guard.refuse_wish, self.job.run, Intent.PLAN, tool)

    async def ask(self, intent: Intent, inquiry: Inquiry, shape: type[T]) -> T:
        """One model run between admit and settle, which takes no longer than is left of the session. Raises
        `ProviderFailed`, `ShapeBroken`, `TooLarge` and what `call` raises."""
        model, spent = self.job.model_name, RunUsage()
        asked = Call(
            tool=intent.value,
            model=model,
            forecast=asking.forecast(inquiry),
            patience_seconds=inquiry.seconds * 2,
        )
        admitted = await in_scope(self.job.tenant_id, guard.admit, self.job.run, intent, asked)
        if not isinstance(admitted, Admitted):
            self._heard(admitted)
            if isinstance(admitted, Refused) and admitted.too_large:
                raise TooLarge(admitted.code)
            raise ProviderFailed("not_admitted")
        inquiry = replace(inquiry, seconds=min(inquiry.seconds, admitted.call.patience_seconds))
        failed = "interrupted"
        try:
            key = self.job.keys.of(model)
            said = await asking.ask(model, inquiry, shape, spent=spent, key=key)
            failed = ""
        except (ProviderFailed, ShapeBroken) as failure:
            failed = getattr(failure, "reason", "shape_broken")
            raise
        finally:
            await asyncio.shield(self._settled(admitted, spent, failed))
        return said.answer

    async def _settled(self, admitted: Admitted, spent: RunUsage, failed: str) -> None:
        await in_scope(self.job.tenant_id, guard.charge, admitted, Usage.of(spent), failed=failed)
        await self._warned()

    async def _warned(self) -> None:
        """Whoever listens is told when most of a limit is used."""
        self.warned = self.warned or bool(await in_scope(self.job.tenant_id, warn_if_near_limit, self.job.session_id))

    def _shown(self) -> Sources:
        """What the session was given and has read: its task is the company's, what set it off may be anybody's."""
        job = self.job
        given = (
            Source(Traced(Origin.AUTHOR), job.prompt),
            Source(Traced(Origin.TOOL), job.context),
            Source(Traced(Origin.TOOL), as_text(job.params)),
            Source(Traced(Origin.MODEL), as_text(job.done)),
        )
        return Sources((*given, *self.brought))

    def _heard(self, outcome: CallOutcome) -> CallOutcome:
        match outcome:
            case Refused(code=RefusalCode.LEASE_LOST):
                raise LeaseLost
            case Refused(code=code, too_large=too_large):
                self._count(code.value)
                if rules.ending_for(code) is not None and not too_large:
                    raise Braked(code)
            case NeedsApproval(asking=asking) if asking:
                self._count(REVIEW_REQUIRED)
            case NeedsApproval():
                self._count(RefusalCode.APPROVAL_MISSING.value)
            case Failed(code=code_of_failure):
                self._count(code_of_failure)
        return outcome

    def _count(self, code: str) -> None:
        self.refused[code] = self.refused.get(code, 0) + 1

    def _patience(self) -> float:
        return float(min(self.job.limits.wall_seconds or 300, 300))


def in_phase(hand: GuardedClient, phase: Phase) -> GuardedClient:
    return replace(hand, phase=phase)
