"""Talk to a deployment in the terminal (specification 8.4): for developers, not for customers."""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from apps.sessions.enums import Sender
from apps.sessions.models import ChronicleEntry
from apps.simulations import conversation
from apps.tenants.models import Deployment
from apps.tenants.queries import deployment_by_key
from kernel.errors import SilasError
from kernel.tenancy import in_scope

PROMPT = "> "
WORK = {
    "card": "Waiting for approval: decide in the console under Review.",
    "dispatched": "Approved by the company's policy, and begun.",
    "refused": "The plan was refused.",
}


class Command(BaseCommand):
    help = (
        "Starts a test conversation with a deployment: one message a line, an empty line shows what has arrived, Ctrl-D"
        " ends it. Actions take the same gates and approvals as a visitor's."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("deployment", help="the public key of the deployment")

    def handle(self, *, deployment: str, **_: object) -> None:
        chatbot = deployment_by_key(deployment)
        if chatbot is None:
            raise CommandError(f"There is no deployment {deployment}.")
        try:
            asyncio.run(self._talk(chatbot))
        except KeyboardInterrupt:
            self.stdout.write("")

    async def _talk(self, chatbot: Deployment) -> None:
        session_id = (await conversation.begin(chatbot)).session_id
        self.stdout.write(f"Test conversation {session_id} with {chatbot.title}. Ctrl-D ends it.")
        shown = 0
        while (text := await asyncio.to_thread(self._read)) is not None:
            work = ""
            if text:
                try:
                    outcome = await conversation.say(chatbot, session_id, text)
                except SilasError as error:
                    self.stderr.write(str(error))
                    continue
                work = WORK.get(outcome.work, "")
            shown = await in_scope(chatbot.tenant_id, self._show, session_id, shown)
            if work:
                self.stdout.write(f"[{work}]")

    def _read(self) -> str | None:
        """The next line without its ends; None when there are no more."""
        self.stdout.write(PROMPT, ending="")
        self.stdout.flush()
        line = sys.stdin.readline()
        return line.strip() if line else None

    def _show(self, session_id: UUID, after: int) -> int:
        """Print what others have said since; returns how far the conversation has come."""
        entries = ChronicleEntry.objects.filter(session_id=session_id, seq__gt=after).order_by("seq")
        for entry in entries:
            after = entry.seq
            if entry.sender == Sender.VISITOR or not entry.text:
                continue
            self.stdout.write(f"{Sender(entry.sender).label}: {entry.text}")
            for number, cited in enumerate(entry.payload.get("citations", ()), start=1):
                self.stdout.write(f"  [{number}] {cited['title']}")
        return after
