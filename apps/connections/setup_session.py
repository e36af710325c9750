"""Hold a set-up conversation: a skill's script runs in a sandbox and a person answers it through a page.

What the script says is written to the set-up's row and a person's answers are read from rows, so that any page of any
process can show and answer it. The conversation ends with a completion that was probed, a failure, a cancellation,
silence or the deadline; in every end but the first, everything that the script supplied is deleted (spec 5.10.1).
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
from kernel.tenancy import tenant_scope
from sandbox import SandboxUnavailable, Session, SessionClosed, open_session

POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Limits:
    """Limits of a conversation, in seconds. `silence`: how long a script may say nothing while no person is asked;
    `whole`: how long the conversation may take."""

    silence: float = 60.0
    whole: float = 1800.0


@dataclass
class SetupSession:
    """The work of one guarded call: a set-up conversation under the lease of its message."""

    tenant_id: UUID
    setup_id: UUID
    lease: LeaseRef
    limits: Limits = Limits()
    talk: Conversation = field(default_factory=Conversation)
    waits: bool = False
    quiet_until: float = 0.0
    code_until: float = 0.0
    lines: list[str] = field(default_factory=list)
    failure: ConnectionFailure | None = None

    def __call__(self, ctx: CallContext) -> HandlerResult:
        """Hold the conversation, then probe the new credentials. Raises `CallFailed` with a code for every other end
        than a completion."""
        setup = self._in_scope(setup_state.get_setup)
        job = scripts.load_job(self.tenant_id, setup.connection_id, setup=setup)
        done, values = self._run(job, setup)
        with tenant_scope(self.tenant_id):
            setup_state.store_partial(setup, values)
        facts = self._probe(setup, done)
        return HandlerResult({}, on_settle=partial(setup_state.complete, self.setup_id, self.lease, done, facts))

    def _run(self, job: Job, setup: SetupRun) -> tuple[Completed, dict[str, str]]:
        spec = job.spec(Script.SETUP, seconds=self.limits.whole)
        try:
            with open_session(spec) as line:
                done = self._converse(line, setup)
                outcome = line.close()
        except (SandboxUnavailable, SessionClosed) as over:
            raise call_failed(over.code, "The script stopped running.") from over
        if outcome.reason or outcome.exit_code != 0:
            raise call_failed(f"script_{outcome.reason or 'failed'}", "The script ended with an error.")
        return done, scripts.new_credentials(outcome.secret_out, "\n".join(self.lines))

    def _converse(self, line: Session, setup: SetupRun) -> Completed:
        """Pass messages between the script and the rows until the script completes."""
        self._send(line, setup_state.start_message(setup))
        ends = time.monotonic() + self.limits.whole
        self._extend_silence()
        while True:
            text = line.read_line(POLL_SECONDS)
            if text is None and line.is_over:
                raise self._ended_early(line)
            done = self._handle_line(text) if text is not None else None
            if done is not None:
                return done
            if text is None:
                self._poll(line)
            if time.monotonic() > ends or (not self.waits and time.monotonic() > self.quiet_until):
                raise call_failed("setup_silent", "The script said nothing for too long.")

    def _ended_early(self, line: Session) -> CallFailed:
        outcome = line.close()
        reason = outcome.reason or ("incomplete" if outcome.exit_code == 0 else "failed")
        return call_failed(f"script_{reason}", "The script ended before the set-up was complete.")

    def _handle_line(self, text: str) -> Completed | None:
        self._extend_silence()
        before = self.talk.ignored
        try:
            action = self.talk.read_line(text)
        except ProtocolBroken as broken:
            raise call_failed(f"setup_{broken.code}", "The script broke the set-up protocol.") from broken
        if action is None:
            if self.talk.ignored != before:
                self._in_scope(setup_state.record_ignored, self.talk.ignored)
            return None
        self.lines.append(text)
        match action:
            case ShowStep():
                self._show(action)
            case AwaitAnswer():
                self.waits = True
            case Completed():
                return action
            case ConnectionFailure():
                raise self._reported_failure(action)
        return None

    def _reported_failure(self, failure: ConnectionFailure) -> CallFailed:
        """Keep the failure that the script reports, for the card about it."""
        self.failure = failure
        return call_failed(f"connection_{failure.failure_type.value}", "The service refused the connection.")

    def _show(self, action: ShowStep) -> None:
        # A script that polls the service while its code can be entered is not silent.
        self.code_until = 0.0
        if isinstance(action.step, DeviceCodeStep):
            self.code_until = time.monotonic() + action.step.expires_in
        self._extend_silence()
        if isinstance(action.step, RedirectStep | SecureInputStep):
            self.waits = True
        self._in_scope(setup_state.show_step, self.lease, action.step_id, action.step)

    def _extend_silence(self) -> None:
        """Allow silence from now on, or from the moment when the code that is shown expires."""
        self.quiet_until = max(time.monotonic(), self.code_until) + self.limits.silence

    def _poll(self, line: Session) -> None:
        """Check the lease and the cancellation, and hand an answer that was stored to the script."""
        update = self._in_scope(setup_state.poll, self.lease, self.talk.current)
        if update.cancelled:
            self._cancel(line)
        if update.answer is None:
            return
        if update.secret:
            line.send_secret(json.dumps(update.secret).encode())
        self.waits = False
        self._extend_silence()
        self._send(line, {"type": "step_result", "step_id": self.talk.current, "payload": update.answer})

    def _cancel(self, line: Session) -> None:
        with suppress(SessionClosed):
            self._send(line, {"type": "cancel", "reason": "user_cancelled"})
        line.close()
        raise call_failed("cancelled", "The set-up was cancelled.")

    def _probe(self, setup: SetupRun, done: Completed) -> dict[str, object]:
        """Make a real call with the new credentials; without one that works nothing becomes active (spec 5.10.1, step
        4)."""
        job = scripts.load_job(self.tenant_id, setup.connection_id, setup=setup)
        script = Script.PROBE if Script.PROBE.value in job.scripts else Script.HEALTH_CHECK
        request = {"connection_id": str(setup.connection_id), "capability": "", "permissions": done.permissions_granted}
        answer, values = scripts.run_script(job, script, request)
        if "failure" in answer:
            raise self._reported_failure(setup_state.parse_failure(answer["failure"]))
        if answer.get("success", answer.get("healthy", True)) is not True:
            raise call_failed("probe_failed", "The connection was set up, but a first call failed.")
        with tenant_scope(self.tenant_id):
            setup_state.store_partial(setup, values)
        return {name: value for name, value in answer.items() if isinstance(value, int | str | bool)}

    def _send(self, line: Session, message: dict[str, object]) -> None:
        line.send_line(json.dumps(message))

    def _in_scope(self, step: Any, *args: Any) -> Any:
        try:
            with tenant_scope(self.tenant_id):
                return step(self.setup_id, *args)
        except SilasError as refusal:
            raise call_failed(refusal.code, refusal.message) from refusal
