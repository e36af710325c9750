"""The console's pages for the command palette, with their roles.

Add new pages here; `roles` are those of the page's view.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.console.members import DECIDING_ROLES, Member
from apps.tenants.enums import Role


@dataclass(frozen=True)
class Page:
    """A page; `words` are further search terms, `key` is its keyboard shortcut."""

    title: str | Promise
    name: str
    words: str | Promise = ""
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
# Translators: the lists of words below are search terms; add those that people type in your language.
PAGES = (
    Page(_("Inbox"), "console-inbox", _("conversations visitors chat messages"), "1"),
    Page(_("Review"), "console-review", _("decisions cards approvals waiting queue"), "2"),
    Page(_("Activity"), "console-activity", _("audit log history timeline happened"), "3"),
    Page(_("While you were away"), "console-away", _("summary slept missed since last visit")),
    Page(_("Insights"), "console-insights", _("metrics numbers charts"), "4"),
    Page(_("Work"), "console-work", _("goals projects tasks standing")),
    Page(_("Automations"), "console-runs", _("runs autonomous sessions tasks schedule")),
    Page(_("New automation"), "console-task-new", _("task run schedule"), roles=DECIDING_ROLES),
    Page(_("Automation settings"), "console-autonomy", _("autonomy runs webhooks"), roles=DECIDING_ROLES),
    Page(_("Notifications"), "console-notices", _("notices results unread")),
    Page(_("My account"), "console-account", _("password second factor authenticator passkeys devices log out")),
    Page(_("Alerts"), "console-alerts", _("push email notifications"), roles=DECIDING_ROLES),
    Page(_("Labels"), "console-labels", _("tags colours conversations")),
    Page(_("Canned replies"), "console-replies", _("templates ready answers")),
    Page(_("Approval keys"), "console-passkeys", _("passkeys account signing security")),
    Page(_("Spending"), "console-spending", _("money budget costs limits"), roles=DECIDING_ROLES),
    Page(_("Queues"), "console-queues", _("stuck failed retry discard"), roles=DECIDING_ROLES),
    Page(_("Safety"), "console-safety", _("agents executions blocks challenges codes"), roles=DECIDING_ROLES),
    Page(
        _("Connections"), "console-connections", _("accounts oauth link calendar mailbox outside"), roles=DECIDING_ROLES
    ),
    Page(_("Knowledge"), "console-knowledge", _("documents website upload search collections"), roles=DECIDING_ROLES),
    Page(_("Skills"), "console-skills", _("tools capabilities catalogue import"), roles=DECIDING_ROLES),
    Page(_("Add a skill"), "console-skill-add", _("import upload archive git package"), roles=DECIDING_ROLES),
    Page(_("Create a skill"), "console-draft-new", _("make write draft skill-maker"), roles=DECIDING_ROLES),
    Page(_("Chatbots"), "console-studios", _("deployments studio widget install snippet look preview"), roles=_OWNER),
    Page(_("Tool servers"), "console-tool-servers", _("mcp outside tools"), roles=_OWNER),
    Page(_("Gates"), "console-gates", _("policy rules"), roles=_OWNER),
    Page(_("New gate"), "console-gate-new", _("write policy rule"), roles=_OWNER),
    Page(_("Members and roles"), "console-members", _("people invite colleagues staff"), roles=_OWNER),
    Page(_("Login settings"), "console-member-logins", _("members second factor openid single sign-on"), roles=_OWNER),
    Page(_("API keys"), "console-api-keys", _("rest tokens"), roles=_OWNER),
    Page(_("Administration"), "admin:index", _("settings members deployments api keys"), roles=_OWNER),
)


def pages_for(member: Member, words: str = "") -> list[Page]:
    """Return the pages that this member may open and that match the words."""
    return [page for page in PAGES if member.role in page.roles and page.matches(words)]
