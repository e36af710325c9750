"""Which pages has the console, what are they called, and who may open them? One line a page, for the palette.

A new page that people should find gets its line here; `roles` are those of its view.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from apps.console.members import DECIDING_ROLES, Member
from apps.tenants.enums import Role


@dataclass(frozen=True)
class Place:
    """`words`: what else somebody may type who looks for it; `key`: the key that opens it."""

    title: str
    name: str
    words: str = ""
    key: str = ""
    roles: tuple[Role, ...] = tuple(Role)

    @property
    def address(self) -> str:
        return reverse(self.name)

    def answers(self, said: str) -> bool:
        """Does every word that was typed begin one of its own?"""
        own = f"{self.title} {self.words}".casefold().split()
        return all(any(word.startswith(part) for word in own) for part in said.casefold().split())


_OWNER = (Role.OWNER,)
PLACES = (
    Place("Inbox", "console-inbox", "conversations visitors chat messages", "1"),
    Place("Review", "console-review", "decisions cards approvals waiting queue", "2"),
    Place("Activity", "console-activity", "audit log history timeline happened", "3"),
    Place("While you were away", "console-away", "summary slept missed since last visit"),
    Place("Insights", "console-insights", "metrics numbers charts", "4"),
    Place("Work", "console-work", "goals projects tasks standing"),
    Place("Runs", "console-runs", "autonomous sessions tasks schedule"),
    Place("Set up a task", "console-task-new", "new run schedule", roles=DECIDING_ROLES),
    Place("What may run by itself", "console-autonomy", "autonomy settings webhooks", roles=DECIDING_ROLES),
    Place("Notices", "console-notices", "results unread"),
    Place("My account", "console-account", "password second factor authenticator passkeys devices log out"),
    Place("Alerts", "console-alerts", "push e-mail notifications letters", roles=DECIDING_ROLES),
    Place("Labels", "console-labels", "tags colours conversations"),
    Place("Canned replies", "console-replies", "templates ready answers"),
    Place("Approval keys", "console-passkeys", "passkeys account signing security"),
    Place("Spending", "console-spending", "money budget costs limits", roles=DECIDING_ROLES),
    Place("Queues", "console-queues", "stuck failed dead letters", roles=DECIDING_ROLES),
    Place("Safety", "console-safety", "agents executions blocks challenges codes", roles=DECIDING_ROLES),
    Place("Connections", "console-connections", "accounts oauth link calendar mailbox outside", roles=DECIDING_ROLES),
    Place("Knowledge", "console-knowledge", "documents website upload search collections", roles=DECIDING_ROLES),
    Place("Skills", "console-skills", "tools capabilities catalogue import", roles=DECIDING_ROLES),
    Place("Add a skill", "console-skill-add", "import upload archive git package", roles=DECIDING_ROLES),
    Place("Make a skill", "console-draft-new", "write draft skill-maker", roles=DECIDING_ROLES),
    Place("Chatbots", "console-studios", "deployments studio widget install snippet look preview", roles=_OWNER),
    Place("Tool servers", "console-tool-servers", "mcp outside tools", roles=_OWNER),
    Place("Gates", "console-gates", "policy rules", roles=_OWNER),
    Place("Write a gate", "console-gate-new", "new policy rule", roles=_OWNER),
    Place("Members and roles", "console-members", "people invite colleagues staff", roles=_OWNER),
    Place("How members log in", "console-member-logins", "second factor openid single sign-on company", roles=_OWNER),
    Place("API keys", "console-api-keys", "rest tokens", roles=_OWNER),
    Place("Administration", "admin:index", "settings members deployments api keys", roles=_OWNER),
)


def places_for(member: Member, said: str = "") -> list[Place]:
    """The pages that this member may open and that answer to what was typed."""
    return [place for place in PLACES if member.role in place.roles and place.answers(said)]
