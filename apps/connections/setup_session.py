"""The work of the guarded call in which a set-up is held: the script in a sandbox, a person at the other end.

What the script says goes into the row, what a person answers comes from rows, so that any page of any process can show
and answer it. Ends with a completion that was probed, a failure, a cancel, silence or the deadline; in every end but
the first what the script brought is gone (spec 5.10.1).
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from apps.bus.schemas import LeaseRef
from apps.connections import scripts
from apps.connections.enums import Script
from apps.connections.models import SetupRun
from apps.connections.protocol import AwaitAnswer, Conversation, ProtocolBroken, ShowStep
from apps.connections.schemas import Completed, ConnectionFailure, DeviceCodeStep, RedirectStep, SecureInputStep
from apps.connections.scripts import Job, call_failed
from apps.connections.services import setup_state
from apps.guard.schemas import CallContext, CallFailed, HandlerResult
from kernel.errors import SilasError
from kernel.sandbox import SandboxUnavailable, Session, SessionClosed, open_session
from kernel.tenancy import tenant_scope

POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Limits:
    """How long a script may say nothing while nobody is asked, and how long the whole may take."""

    silence: float = 60.0
    whole: float = 1800.0


@dataclass
class SetupSession:
    """One conversation as it is held, under the lease of its message."""

    tenant_id: UUID
    setup_id: UUID
    lease: LeaseRef
    limits: Limits = Limits()
    talk: Conversation = field(default_factory=Conversation)
    waits: bool = False
    quiet_until: float = 0.0
    code_until: float = 0.0
    said: list[str] = field(default_factory=list)
    failure: ConnectionFailure | None = None

    def __call__(self, ctx: CallContext) -> HandlerResult:
        """The guarded call's work. Whatever ends it otherwise than well is a `CallFailed` with its code."""
        setup = self._in_scope(setup_state.get_setup)
        job = scripts.load_job(self.tenant_id, setup.connection_id, setup=setup)
        done, handed = self._talk_through(job, setup)
        with tenant_scope(self.tenant_id):
            setup_state.store_partial(setup, handed)
        facts = self._probed(setup, done)
        return HandlerResult({}, on_settle=partial(setup_state.complete, self.setup_id, self.lease, done, facts))

    def _talk_through(self, job: Job, setup: SetupRun) -> tuple[Completed, dict[str, str]]:
        spec = job.spec(Script.SETUP, seconds=self.limits.whole)
        try:
            with open_session(spec) as line:
                done = self._converse(line, setup)
                outcome = line.close()
        except (SandboxUnavailable, SessionClosed) as over:
            raise call_failed(over.code, "The script does not run any more.") from over
        if outcome.reason or outcome.exit_code != 0:
            raise call_failed(f"script_{outcome.reason or 'failed'}", "The script did not end as it should.")
        return done, scripts.new_credentials(outcome.secret_out, "\n".join(self.said))

    def _converse(self, line: Session, setup: SetupRun) -> Completed:
        self._send(line, setup_state.start_message(setup))
        ends = time.monotonic() + self.limits.whole
        self._be_patient()
        while True:
            text = line.read_line(POLL_SECONDS)
            if text is None and line.is_over:
                raise self._died(line)
            done = self._hear(line, text) if text is not None else None
            if done is not None:
                return done
            if text is None:
                self._look(line)
            if time.monotonic() > ends or (not self.waits and time.monotonic() > self.quiet_until):
                raise call_failed("setup_silent", "The script said nothing for too long.")

    def _died(self, line: Session) -> CallFailed:
        """It ended before it said how: its limits, an exit code, or nothing at all."""
        outcome = line.close()
        reason = outcome.reason or ("incomplete" if outcome.exit_code == 0 else "failed")
        return call_failed(f"script_{reason}", "The script ended before it was done.")

    def _hear(self, line: Session, text: str) -> Completed | None:
        self._be_patient()
        before = self.talk.ignored
        try:
            move = self.talk.hear(text)
        except ProtocolBroken as broken:
            raise call_failed(f"setup_{broken.code}", "The script does not keep the protocol.") from broken
        if move is None:
            if self.talk.ignored != before:
                self._in_scope(setup_state.record_ignored, self.talk.ignored)
            return None
        self.said.append(text)
        match move:
            case ShowStep():
                self._show(move)
            case AwaitAnswer():
                self.waits = True
            case Completed():
                return move
            case ConnectionFailure():
                raise self._refused(move)
        return None

    def _refused(self, failure: ConnectionFailure) -> CallFailed:
        """What the service, or the script, says itself is wrong: kept for the card that tells of it."""
        self.failure = failure
        return call_failed(f"connection_{failure.failure_type.value}", "The service did not let us in.")

    def _show(self, shown: ShowStep) -> None:
        """A script that polls at the service is not silent meanwhile."""
        self.code_until = 0.0
        if isinstance(shown.step, DeviceCodeStep):
            self.code_until = time.monotonic() + shown.step.expires_in
        self._be_patient()
        if isinstance(shown.step, RedirectStep | SecureInputStep):
            self.waits = True
        self._in_scope(setup_state.show_step, self.lease, shown.step_id, shown.step)

    def _be_patient(self) -> None:
        """It may say nothing for so long from now on, and as long as the code that it shows can be entered."""
        self.quiet_until = max(time.monotonic(), self.code_until) + self.limits.silence

    def _look(self, line: Session) -> None:
        """Is the lease still ours, has somebody cancelled, has somebody answered?"""
        heard = self._in_scope(setup_state.poll, self.lease, self.talk.current)
        if heard.cancelled:
            self._cancel(line)
        if heard.answer is None:
            return
        if heard.secret:
            line.send_secret(json.dumps(heard.secret).encode())
        self.waits = False
        self._be_patient()
        self._send(line, {"type": "step_result", "step_id": self.talk.current, "payload": heard.answer})

    def _cancel(self, line: Session) -> None:
        with suppress(SessionClosed):
            self._send(line, {"type": "cancel", "reason": "user_cancelled"})
        line.close()
        raise call_failed("cancelled", "Somebody cancelled it.")

    def _probed(self, setup: SetupRun, done: Completed) -> dict[str, Any]:
        """A real call with the new credentials; without one that works nothing becomes active (spec 5.10.1, step 4)."""
        job = scripts.load_job(self.tenant_id, setup.connection_id, setup=setup)
        script = Script.PROBE if Script.PROBE.value in job.scripts else Script.HEALTH_CHECK
        asked = {"connection_id": str(setup.connection_id), "capability": "", "permissions": done.permissions_granted}
        answer, handed = scripts.run_script(job, script, asked)
        if "failure" in answer:
            raise self._refused(setup_state.parse_failure(answer["failure"]))
        if answer.get("success", answer.get("healthy", True)) is not True:
            raise call_failed("probe_failed", "The connection was set up, and a first call did not work.")
        with tenant_scope(self.tenant_id):
            setup_state.store_partial(setup, handed)
        return {name: value for name, value in answer.items() if isinstance(value, int | str | bool)}

    def _send(self, line: Session, message: dict[str, Any]) -> None:
        line.send_line(json.dumps(message))

    def _in_scope(self, step: Any, *args: Any) -> Any:
        try:
            with tenant_scope(self.tenant_id):
                return step(self.setup_id, *args)
        except SilasError as refusal:
            raise call_failed(refusal.code, refusal.message) from refusal
