"""The console's pages for the command palette, with their roles.

Add new pages here; `roles` are those of the page's view.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from apps.console.members import DECIDING_ROLES, Member
from apps.tenants.enums import Role


@dataclass(frozen=True)
class Page:
    """A page; `words` are further search terms, `key` is its keyboard shortcut."""

    title: str | Promise
    name: str
    words: str = ""
    key: str = ""
    roles: tuple[Role, ...] = tuple(Role)

    @property
    def address(self) -> str:
        return reverse(self.name)

    def matches(self, words: str) -> bool:
        """True if every typed word is the beginning of one of the page's words."""
        own = f"{self.title} {self.words}".casefold().split()
        return all(any(word.startswith(part) for word in own) for part in words.casefold().split())


_OWNER = (Role.OWNER,)
PAGES = (
    Page(gettext_lazy("Inbox"), "console-inbox", "conversations visitors chat messages", "1"),
    Page(gettext_lazy("Review"), "console-review", "decisions cards approvals waiting queue", "2"),
    Page(gettext_lazy("Activity"), "console-activity", "audit log history timeline happened", "3"),
    Page(gettext_lazy("While you were away"), "console-away", "summary slept missed since last visit"),
    Page(gettext_lazy("Insights"), "console-insights", "metrics numbers charts", "4"),
    Page(gettext_lazy("Work"), "console-work", "goals projects tasks standing"),
    Page(gettext_lazy("Automations"), "console-runs", "runs autonomous sessions tasks schedule"),
    Page(gettext_lazy("New automation"), "console-task-new", "task run schedule", roles=DECIDING_ROLES),
    Page(gettext_lazy("Automation settings"), "console-autonomy", "autonomy runs webhooks", roles=DECIDING_ROLES),
    Page(gettext_lazy("Notifications"), "console-notices", "notices results unread"),
    Page(
        gettext_lazy("My account"), "console-account", "password second factor authenticator passkeys devices log out"
    ),
    Page(gettext_lazy("Alerts"), "console-alerts", "push email notifications", roles=DECIDING_ROLES),
    Page(gettext_lazy("Labels"), "console-labels", "tags colours conversations"),
    Page(gettext_lazy("Canned replies"), "console-replies", "templates ready answers"),
    Page(gettext_lazy("Approval keys"), "console-passkeys", "passkeys account signing security"),
    Page(gettext_lazy("Spending"), "console-spending", "money budget costs limits", roles=DECIDING_ROLES),
    Page(gettext_lazy("Queues"), "console-queues", "stuck failed retry discard", roles=DECIDING_ROLES),
    Page(gettext_lazy("Safety"), "console-safety", "agents executions blocks challenges codes", roles=DECIDING_ROLES),
    Page(
        gettext_lazy("Connections"),
        "console-connections",
        "accounts oauth link calendar mailbox outside",
        roles=DECIDING_ROLES,
    ),
    Page(
        gettext_lazy("Knowledge"),
        "console-knowledge",
        "documents website upload search collections",
        roles=DECIDING_ROLES,
    ),
    Page(gettext_lazy("Skills"), "console-skills", "tools capabilities catalogue import", roles=DECIDING_ROLES),
    Page(gettext_lazy("Add a skill"), "console-skill-add", "import upload archive git package", roles=DECIDING_ROLES),
    Page(gettext_lazy("Create a skill"), "console-draft-new", "make write draft skill-maker", roles=DECIDING_ROLES),
    Page(
        gettext_lazy("Chatbots"),
        "console-studios",
        "deployments studio widget install snippet look preview",
        roles=_OWNER,
    ),
    Page(gettext_lazy("Tool servers"), "console-tool-servers", "mcp outside tools", roles=_OWNER),
    Page(gettext_lazy("Gates"), "console-gates", "policy rules", roles=_OWNER),
    Page(gettext_lazy("New gate"), "console-gate-new", "write policy rule", roles=_OWNER),
    Page(gettext_lazy("Members and roles"), "console-members", "people invite colleagues staff", roles=_OWNER),
    Page(
        gettext_lazy("Login settings"),
        "console-member-logins",
        "members second factor openid single sign-on",
        roles=_OWNER,
    ),
    Page(gettext_lazy("API keys"), "console-api-keys", "rest tokens", roles=_OWNER),
    Page(gettext_lazy("Administration"), "admin:index", "settings members deployments api keys", roles=_OWNER),
)


def pages_for(member: Member, words: str = "") -> list[Page]:
    """Return the pages that this member may open and that match the words."""
    return [page for page in PAGES if member.role in page.roles and page.matches(words)]
