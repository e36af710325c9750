"""The guarded-call client of a session: the only way in which a session reaches a tool, a model or a row.

A brake ends the session: `Braked` passes every `except Exception` on its way to the one handler that ends it. Any other
refusal or failure is a result, and the session goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from apps.autonomy import rules
from apps.autonomy.anonymiser import Anonymiser
from apps.autonomy.enums import Egress
from apps.autonomy.jobs import LEVELS, Job
from apps.autonomy.services.limit_warnings import warn_if_near_limit
from apps.bus.schemas import LeaseLost
from apps.gates.content import LEFT, check_content
from apps.gates.schemas import GateSpec
from apps.guard import services as guard
from apps.guard.enums import Intent, Phase, RefusalCode
from apps.guard.offered_tools import source_of_result
from apps.guard.schemas import Admitted, Call, CallOutcome, Done, Failed, NeedsApproval, Refused
from kernel.canonical import sha256_hex
from kernel.provenance import Origin, Source, Sources, Traced, as_text
from kernel.tenancy import in_scope, in_thread
from llm import structured_output
from llm.failures import ProviderFailed, ShapeBroken
from llm.runs import Usage, new_usage
from llm.structured_output import StructuredRequest

if TYPE_CHECKING:
    from pydantic_ai.usage import RunUsage

T = TypeVar("T", bound=BaseModel)
_READS = frozenset({Intent.RETRIEVE_CHUNKS, Intent.RUN_PLAYBOOK})
_MOST_READS = 100
# Counted when a gate wants a person to review a call first: no session waits for that.
REVIEW_REQUIRED = "review_required"


class Braked(BaseException):
    """The guard ended the run. A `BaseException`, so that no `except Exception` on the way swallows it."""

    def __init__(self, code: RefusalCode) -> None:
        super().__init__(code.value)
        self.code = code


class TooLarge(Exception):
    """The model request does not fit into what is left of a limit; a smaller one may."""

    def __init__(self, code: RefusalCode) -> None:
        super().__init__(code.value)
        self.code = code


@dataclass
class GuardedClient:
    """Make the guarded calls of one session.

    `refused` counts refused and failed calls by code; `brought` holds what calls returned and where it comes
    from, which the next call is judged by; `anonymiser` holds the placeholders of what models read; `reads` holds
    what the analysis has read, so that a session that continues it reads nothing twice.
    """

    job: Job
    phase: Phase = Phase.INTAKE
    refused: dict[str, int] = field(default_factory=dict)
    brought: list[Source] = field(default_factory=list)
    anonymiser: Anonymiser = field(default_factory=Anonymiser)
    reads: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def call(
        self,
        intent: Intent,
        tool: str,
        args: Mapping[str, object],
        *,
        estimate: Decimal | None = None,
        leaves: bool = False,
        outside: bool = False,
        gates: tuple[GateSpec, ...] = (),
        **context: object,
    ) -> CallOutcome:
        """Make one guarded call.

        `gates` judge this call in addition to the session's; one that asks for a person refuses it, because no session
        waits for one. `leaves` and `outside`: as of `OfferedTool`.

        Raises `Braked`, and `LeaseLost` when another worker has taken the session over.
        """
        job = self.job
        call_context: dict[str, object] = {
            "session": str(job.session_id),
            "task": job.task_name,
            "deployment": str(job.deployment_id),
            "phase": self.phase.value,
            "levels": LEVELS,
            "skills": job.skills,
            "customer": "",
            "house": True,
            **context,
            "egress": job.egress.value,
        }
        call = Call(
            tool=tool,
            args=args,
            access=frozenset({tool}),
            estimate=estimate,
            patience_seconds=float(min(job.limits.wall_seconds or 300, 300)),
            gates=(*job.gates, *gates),
            leaves=leaves,
            shown=self._shown(),
        )
        outcome = await guard.guarded_call(job.run, intent, call, context=call_context)
        if isinstance(outcome, Done):
            self.brought.append(source_of_result(intent, outcome.value, leaves=leaves, outside=outside, args=args))
        await self._warn()
        return self._checked(outcome)

    async def call_value(self, intent: Intent, tool: str, args: Mapping[str, Any], **context: Any) -> dict[str, Any]:
        """Make one guarded call and return its value; {} when it was refused or failed.

        What the session that this one continues has read is returned without a call.
        """
        is_stored = self.phase is Phase.ANALYSIS and intent in _READS
        key = sha256_hex([intent.value, tool, dict(args)]) if is_stored else ""
        earlier = self.job.done.get(Phase.ANALYSIS, {}).get("reads", {})
        if is_stored and key in earlier:
            value = dict(earlier[key])
            self.brought.append(source_of_result(intent, value, leaves=False, outside=False, args=args))
        else:
            outcome = await self.call(intent, tool, args, **context)
            value = dict(outcome.value) if isinstance(outcome, Done) else {}
        if is_stored and value and len(self.reads) < _MOST_READS:
            self.reads[key] = value
        return value

    async def screen_context(self) -> None:
        """Have the gates check what another session passed on to this one before a model reads it."""
        job = self.job
        mark = await asyncio.to_thread(check_content, job.context, job.gates, kind=LEFT, ref=str(job.session_id))
        if mark is not None:
            await in_scope(job.tenant_id, guard.record_mark, job.run, mark)

    async def record_ungranted_tool(self, tool: str) -> None:
        """Record that a model chose a tool that it was not offered."""
        self._count(RefusalCode.TOOL_NOT_GRANTED.value)
        await in_scope(self.job.tenant_id, guard.record_unoffered_tool, self.job.run, Intent.PLAN, tool)

    async def ask_model(self, intent: Intent, inquiry: StructuredRequest, shape: type[T]) -> T:
        """Run one model request between admission and settlement, within what is left of the session's time.

        Unless the company sends texts as they are, the model reads placeholders instead of personal data.
        Raises `ProviderFailed`, `ShapeBroken`, `TooLarge`, and what `call` raises.
        """
        model, spent = self.job.model_name, new_usage()
        if self.hides:
            inquiry = await in_thread(self._without_personal_data, inquiry)
        call = Call(
            tool=intent.value,
            model=model,
            forecast=structured_output.estimate_usage(inquiry),
            patience_seconds=inquiry.seconds * 2,
        )
        admitted = await in_scope(self.job.tenant_id, guard.admit, self.job.run, intent, call)
        if not isinstance(admitted, Admitted):
            self._checked(admitted)
            if isinstance(admitted, Refused) and admitted.too_large:
                raise TooLarge(admitted.code)
            raise ProviderFailed("not_admitted")
        inquiry = replace(inquiry, seconds=min(inquiry.seconds, admitted.call.patience_seconds))
        failure = "interrupted"
        try:
            key = self.job.keys.of(model)
            result = await structured_output.request(model, inquiry, shape, spent=spent, key=key)
            failure = ""
        except (ProviderFailed, ShapeBroken) as error:
            failure = getattr(error, "reason", "shape_broken")
            raise
        finally:
            # Shielded: what a cancelled request has used is charged all the same.
            await asyncio.shield(self._settle(admitted, spent, failure))
        return self.anonymiser.restore_answer(result.answer)

    @property
    def hides(self) -> bool:
        """Whether personal data is replaced before it leaves."""
        return self.job.egress is not Egress.FULL

    def _without_personal_data(self, inquiry: StructuredRequest) -> StructuredRequest:
        self.anonymiser.read(self.job.prompt, *(text for _, text in inquiry.data))
        data = tuple((heading, self.anonymiser.hide(text)) for heading, text in inquiry.data)
        return replace(inquiry, task=self.anonymiser.hide(inquiry.task), data=data)

    async def _settle(self, admitted: Admitted, spent: RunUsage, failure: str) -> None:
        await in_scope(self.job.tenant_id, guard.charge, admitted, Usage.of(spent), failed=failure)
        await self._warn()

    async def _warn(self) -> None:
        await in_scope(self.job.tenant_id, warn_if_near_limit, self.job.session_id)

    def _shown(self) -> Sources:
        """What the session was given and has read, by origin: the prompt is the company's, the rest may be anyone's."""
        job = self.job
        given = (
            Source(Traced(Origin.AUTHOR), job.prompt),
            Source(Traced(Origin.TOOL), job.context),
            Source(Traced(Origin.TOOL), as_text(job.params)),
            Source(Traced(Origin.MODEL), as_text([_without_reads(state) for state in job.done.values()])),
        )
        return Sources((*given, *self.brought))

    def _checked(self, outcome: CallOutcome) -> CallOutcome:
        """Count a refusal or failure, and raise for one that ends the session."""
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
            case Failed(code=failure_code):
                self._count(failure_code)
        return outcome

    def _count(self, code: str) -> None:
        self.refused[code] = self.refused.get(code, 0) + 1


def _without_reads(state: Mapping[str, object]) -> dict[str, object]:
    """A phase's result without what it read, which counts from where it came when it is used."""
    return {name: value for name, value in state.items() if name != "reads"}
