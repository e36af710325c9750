"""Where a member can go: the pages of the rail, the Settings area in its groups, and the command palette's other pages.

Rail, Settings, its search and the palette are drawn from this list, so a page that is missing here is found nowhere.
`roles` are those of a page's view. What a team uses every day stands in the rail; what it sets up once is in Settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from apps.console.members import ANSWERING_ROLES, DECIDING_ROLES, Member
from apps.tenants.enums import Role

Text = str | Promise

OWNER = (Role.OWNER,)


@dataclass(frozen=True)
class Page:
    """A page; `words` are further search terms, `key` is its keyboard shortcut, `anchor` a part of it."""

    title: Text
    name: str
    words: Text = ""
    key: str = ""
    roles: tuple[Role, ...] = tuple(Role)
    anchor: str = ""

    @property
    def address(self) -> str:
        return reverse(self.name) + (f"#{self.anchor}" if self.anchor else "")

    def matches(self, words: str) -> bool:
        """True if every typed word is the beginning of one of the page's words."""
        own = f"{self.title} {self.words}".casefold().split()
        return all(any(word.startswith(part) for word in own) for part in words.casefold().split())


@dataclass(frozen=True)
class RailPage(Page):
    """A page of the rail. `at` is what its views call it; on a phone only `first` ones are in the bar."""

    at: str = ""
    icon: str = ""
    first: bool = False


@dataclass(frozen=True)
class RailLink:
    """A line of the rail with the count beside its name; `said` is what the count counts."""

    page: RailPage
    count: str = ""
    said: Text = ""


@dataclass(frozen=True)
class SettingsPage(Page):
    """A page of the Settings area. `owns` begins the names of the addresses that belong to it, `contains` the settings
    on it by (label, anchor)."""

    about: Text = ""
    owns: tuple[str, ...] = ()
    contains: tuple[tuple[Text, str], ...] = ()

    @property
    def parts(self) -> tuple[Page, ...]:
        """The settings on this page, to jump to."""
        return tuple(
            Page(title, self.name, self.title, roles=self.roles, anchor=anchor) for title, anchor in self.contains
        )


@dataclass(frozen=True)
class Group:
    """A group of the Settings area."""

    key: str
    title: Text
    pages: tuple[SettingsPage, ...] = field(default_factory=tuple)


# Translators: the lists of words below are search terms; add those that people type in your language.
RAIL = (
    RailPage(
        _("Inbox"),
        "console-inbox",
        _("conversations visitors chat messages"),
        "1",
        at="inbox",
        icon="M4 13l2.5-8h11L20 13v6H4z M4 13h5l1.5 2.5h3L15 13h5",
        first=True,
    ),
    RailPage(
        _("Review"),
        "console-review",
        _("decisions cards approvals waiting queue"),
        "2",
        at="review",
        icon="M5 12.5l4.2 4.2L19 7",
        first=True,
    ),
    RailPage(
        _("Activity"),
        "console-activity",
        _("audit log history timeline happened"),
        "3",
        at="activity",
        icon="M4 12h4l2.5-6 4 12 2.5-6h3",
        first=True,
    ),
    RailPage(
        _("Insights"),
        "console-insights",
        _("metrics numbers charts"),
        "4",
        at="insights",
        icon="M5 19V11 M12 19V5 M19 19v-5",
        first=True,
    ),
    RailPage(
        _("Contacts"),
        "console-contacts",
        _("customers people visitors merge identities"),
        at="contacts",
        icon="M12 4a4 4 0 1 0 0 8a4 4 0 0 0 0-8z M4.5 20c.8-3.6 3.8-5.5 7.5-5.5s6.7 1.9 7.5 5.5",
    ),
    RailPage(
        _("Work"),
        "console-work",
        _("goals projects tasks standing"),
        at="work",
        icon="M4 8h16v11H4z M9 8V5h6v3 M4 13h16",
    ),
    RailPage(
        _("Automations"),
        "console-runs",
        _("runs autonomous sessions tasks schedule"),
        at="runs",
        icon="M19 12a7 7 0 1 1-2.2-5.1 M19 4v4h-4",
    ),
    RailPage(
        _("Knowledge"),
        "console-knowledge",
        _("documents website upload search collections"),
        roles=DECIDING_ROLES,
        at="knowledge",
        icon="M12 6.5C10 5 7.5 4.5 4 4.5V18c3.5 0 6 .5 8 2c2-1.5 4.5-2 8-2V4.5c-3.5 0-6 .5-8 2z M12 6.5V20",
    ),
    RailPage(
        _("Memory"),
        "console-memories",
        _("memories remembered forget customers"),
        roles=ANSWERING_ROLES,
        at="memory",
        icon="M7 4h10v16l-5-4l-5 4z",
    ),
    RailPage(
        _("Notifications"),
        "console-notices",
        _("notices results unread"),
        at="notices",
        icon="M6 16V11a6 6 0 0 1 12 0v5l1.5 2h-15z M10 20.5h4",
    ),
)
# In the rail while a limit is nearly or quite used up; always in Settings.
_SPENDING = RailPage(
    _("Spending"),
    "console-spending",
    at="spending",
    icon="M12 3v18 M16.5 7.5c-.8-1.6-2.4-2.2-4.5-2.2-2.6 0-4.5 1.2-4.5 3.3 0 4.6 9.4 2.2 9.4 6.9 0 2.1-2 "
    "3.3-4.9 3.3-2.4 0-4.2-.9-4.9-2.7",
    first=True,
    roles=DECIDING_ROLES,
)

SETTINGS = (
    Group(
        "workspace",
        _("Workspace"),
        (
            SettingsPage(
                _("Company"),
                "console-company-settings",
                _("name time zone workspace"),
                roles=OWNER,
                about=_("The company's name and time zone."),
                owns=("console-company-settings",),
            ),
            SettingsPage(
                _("Members and roles"),
                "console-members",
                _("people invite colleagues staff team"),
                roles=OWNER,
                about=_("Invite colleagues and choose what each of them may do."),
                owns=("console-member", "console-invit", "console-uninvite"),
            ),
            SettingsPage(
                _("Teams"),
                "console-teams",
                _("assignment hours holidays availability away round robin"),
                about=_("Who answers what, at which hours, and how conversations are assigned."),
                owns=("console-team",),
            ),
            SettingsPage(
                _("Labels"),
                "console-labels",
                _("tags colours conversations"),
                about=_("Names and colors that sort conversations."),
                owns=("console-label",),
            ),
            SettingsPage(
                _("Canned replies"),
                "console-replies",
                _("templates ready answers saved"),
                about=_("Ready answers under a short name."),
                owns=("console-replies", "console-canned"),
            ),
            SettingsPage(
                _("Saved views"),
                "console-views",
                _("filters lists inbox review"),
                about=_("Filters of the inbox and of Review under a name."),
                owns=("console-view",),
            ),
            SettingsPage(
                _("Macros"),
                "console-macros",
                _("steps actions shortcuts templates"),
                about=_("Several steps on a conversation with one press."),
                owns=("console-macro",),
            ),
            SettingsPage(
                _("Inbox rules"),
                "console-inbox-rules",
                _("automation workflows triggers conditions if then"),
                about=_("Actions that run when something happens in a conversation."),
                owns=("console-inbox-rule",),
            ),
            SettingsPage(
                _("SLA policies"),
                "console-sla-policies",
                _("service level agreement reply resolution time targets overdue"),
                about=_("How soon your team replies and resolves."),
                owns=("console-sla-policies", "console-sla-policy"),
            ),
            SettingsPage(
                _("Import contacts"),
                "console-imports",
                _("chatwoot intercom zendesk migrate export"),
                roles=OWNER,
                about=_("Contacts and conversations from Chatwoot, Intercom or Zendesk."),
                owns=("console-import",),
            ),
        ),
    ),
    Group(
        "chatbots",
        _("Chatbots"),
        (
            SettingsPage(
                _("Chatbots"),
                "console-studios",
                _("deployments studio widget install snippet look preview"),
                roles=OWNER,
                about=_("Appearance, instructions, models, websites and releases of each chatbot."),
                owns=("console-studio", "console-release", "console-install"),
            ),
            SettingsPage(
                _("Channels"),
                "console-channels",
                _("email telegram whatsapp slack teams sms messengers"),
                roles=OWNER,
                about=_("Email, WhatsApp, Telegram and other ways in beside the chat."),
                owns=("console-channel",),
            ),
            SettingsPage(
                _("Simulations"),
                "console-simulations",
                _("scenarios test regression"),
                roles=DECIDING_ROLES,
                about=_("Test conversations that a chatbot must pass before a change goes live."),
                owns=("console-simulation",),
            ),
        ),
    ),
    Group(
        "policy",
        _("Policy"),
        (
            SettingsPage(
                _("Gates"),
                "console-gates",
                _("policy rules checks new write"),
                roles=OWNER,
                about=_("Checks of every message, answer and action."),
                owns=("console-gate",),
            ),
            SettingsPage(
                _("Safety"),
                "console-safety",
                _("agents executions blocks challenges codes"),
                roles=DECIDING_ROLES,
                about=_("What agents may do on their own, and what is on hold."),
                owns=("console-safety",),
            ),
            SettingsPage(
                _("Access levels"),
                "console-access-levels",
                _("visitors identity tools gates required public verified"),
                roles=OWNER,
                about=_("What visitors can use at each level of identity check."),
                owns=("console-access-level",),
            ),
            SettingsPage(
                _("Approval policies"),
                "console-approval-policies",
                _("who may approve people passkey four eyes risk"),
                roles=OWNER,
                about=_("Who may approve, how many have to, and whether with a passkey."),
                owns=("console-approval-policies", "console-approval-policy"),
            ),
            SettingsPage(
                _("Spending"),
                "console-spending",
                _("money budget costs limits refund"),
                roles=DECIDING_ROLES,
                about=_("Limits for what answers and work may cost, and what they did cost."),
                owns=("console-spending", "console-limit"),
                contains=((_("Spending limits"), "limits-title"), (_("Set a limit"), "limit")),
            ),
            SettingsPage(
                _("Spending policy"),
                "console-spending-policy",
                _("limit reached pause stop visitor daily default price"),
                roles=OWNER,
                about=_("What happens at a limit, the daily limit per visitor, and the price of unknown models."),
                owns=("console-spending-policy",),
            ),
            SettingsPage(
                _("Time to decide"),
                "console-card-timings",
                _("cards timings expiry deadline approvals timeout"),
                roles=OWNER,
                about=_("How long cards wait in Review before they count as declined."),
                owns=("console-card-timings",),
            ),
            SettingsPage(
                _("Model prices"),
                "console-prices",
                _("money tokens costs rates models"),
                roles=OWNER,
                about=_("What your models cost, where the public price list is wrong or has none."),
                owns=("console-price",),
            ),
            SettingsPage(
                _("Visitor limits"),
                "console-visitor-limits",
                _("messages a minute flood abuse rate throttle sockets"),
                roles=OWNER,
                about=_("How much visitors can send a minute, and how much may wait."),
                owns=("console-visitor-limits",),
            ),
        ),
    ),
    Group(
        "abilities",
        _("Abilities"),
        (
            SettingsPage(
                _("Skills"),
                "console-skills",
                _("tools capabilities catalogue import"),
                roles=DECIDING_ROLES,
                about=_("What chatbots and automations can do beyond talking."),
                owns=("console-skill", "console-draft", "console-publisher"),
            ),
            SettingsPage(
                _("Connections"),
                "console-connections",
                _("accounts oauth link calendar mailbox outside"),
                roles=DECIDING_ROLES,
                about=_("Accounts at other services that skills use."),
                owns=("console-connection",),
            ),
            SettingsPage(
                _("Tool servers"),
                "console-tool-servers",
                _("mcp outside tools"),
                roles=OWNER,
                about=_("Tools of outside MCP servers, and web search."),
                owns=("console-tool", "console-web-search"),
                contains=((_("Web search"), "web-search"),),
            ),
        ),
    ),
    Group(
        "automation",
        _("Automation"),
        (
            SettingsPage(
                _("Automation settings"),
                "console-autonomy",
                _("autonomy runs unattended schedule"),
                roles=DECIDING_ROLES,
                about=_("Whether automations run, how many at once, and in whose name."),
                owns=("console-autonomy", "console-webhook"),
            ),
        ),
    ),
    Group(
        "security",
        _("Security"),
        (
            SettingsPage(
                _("Login"),
                "console-member-logins",
                _("members second factor openid single sign-on sso"),
                roles=OWNER,
                about=_("Second factors and your company's own login provider."),
                owns=("console-member-logins", "console-second-required", "console-provider"),
            ),
            SettingsPage(
                _("Data retention"),
                "console-retention",
                _("delete keep days gdpr privacy conversations memories"),
                roles=OWNER,
                about=_("For how long conversations, memories and jobs are kept."),
                owns=("console-retention",),
            ),
        ),
    ),
    Group(
        "developers",
        _("Developers"),
        (
            SettingsPage(
                _("API keys"),
                "console-api-keys",
                _("rest tokens"),
                roles=OWNER,
                about=_("Keys for your own programs, and for agents that sign their requests."),
                owns=("console-api-key", "console-client-key"),
            ),
            SettingsPage(
                _("Apps"),
                "console-apps",
                _("oauth third-party clients mcp"),
                roles=OWNER,
                about=_("Programs that members connect to their account."),
                owns=("console-app",),
            ),
            SettingsPage(
                _("Queues"),
                "console-queues",
                _("stuck failed retry discard"),
                roles=DECIDING_ROLES,
                about=_("Background jobs, and those that failed."),
                owns=("console-queue",),
            ),
            SettingsPage(
                _("Administration"),
                "admin:index",
                _("tables rows django"),
                roles=OWNER,
                about=_("Every table of the company, for administrators."),
            ),
        ),
    ),
    Group(
        "personal",
        _("Personal"),
        (
            SettingsPage(
                _("My account"),
                "console-account",
                _("password second factor authenticator passkeys devices log out language"),
                about=_("Your name, password, second factors, sessions and language."),
                owns=("console-account", "console-login-end", "console-logins-end"),
            ),
            SettingsPage(
                _("Alerts"),
                "console-alerts",
                _("push email notifications sound desktop quiet hours"),
                roles=ANSWERING_ROLES,
                about=_("Push, email, sound and desktop notifications, and your quiet hours."),
                owns=("console-alerts", "console-push"),
            ),
            SettingsPage(
                _("Approve in chat apps"),
                "console-account-channels",
                _("telegram slack teams channels approvals"),
                roles=DECIDING_ROLES,
                about=_("Decide about cards in Telegram and other channels."),
                owns=("console-account-channel",),
            ),
            SettingsPage(
                _("Approval keys"),
                "console-passkeys",
                _("passkeys account signing security"),
                about=_("Keys that sign what you approve."),
                owns=("console-passkey", "console-key-replace"),
            ),
            SettingsPage(
                _("Connected apps"),
                "console-connected-apps",
                _("oauth revoke access"),
                about=_("Programs that may act for you."),
                owns=("console-connected-app",),
            ),
        ),
    ),
)

OTHER_PAGES = (
    Page(_("Settings"), "console-settings", _("preferences configuration set up")),
    Page(_("While you were away"), "console-away", _("summary slept missed since last visit")),
    Page(_("Erasures"), "console-erasures", _("erase delete personal data gdpr receipt privacy"), roles=OWNER),
    Page(_("New automation"), "console-task-new", _("task run schedule"), roles=DECIDING_ROLES),
    Page(_("Export and import memories"), "console-memory-bundle", _("bundle memory backup"), roles=OWNER),
    Page(_("Add a skill"), "console-skill-add", _("import upload archive git package"), roles=DECIDING_ROLES),
    Page(_("Create a skill"), "console-draft-new", _("make write draft skill-maker"), roles=DECIDING_ROLES),
)

PAGES: tuple[Page, ...] = (*RAIL, *(page for group in SETTINGS for page in group.pages), *OTHER_PAGES)
_OWNED = sorted(
    ((start, page) for group in SETTINGS for page in group.pages for start in page.owns),
    key=lambda pair: -len(pair[0]),
)


def rail(member: Member, *, wanted: int, waiting: int, unread: int, money: int) -> list[RailLink]:
    """The rail of this member, with what waits beside each name. `money` is the share of a limit that is used."""
    counted: Mapping[str, tuple[int, Text]] = {
        "inbox": (wanted, ngettext_lazy("waiting for a person", "waiting for a person", wanted)),
        "review": (waiting, ngettext_lazy("open", "open", waiting)),
        "notices": (unread, ngettext_lazy("unread", "unread", unread)),
    }
    links = []
    for page in RAIL:
        number, said = counted.get(page.at, (0, ""))
        if member.role in page.roles:
            links.append(RailLink(page, str(number) if number else "", said))
    if money:
        said = _("a limit is reached") if money == 100 else _("of a limit is used")
        links.insert(4, RailLink(_SPENDING, f"{money}%", said))
    return links


def settings_for(member: Member, words: str = "") -> list[Group]:
    """The groups of the Settings area with the pages that this member may open and that match the words."""
    groups = [
        Group(
            group.key,
            group.title,
            tuple(
                page
                for page in group.pages
                if member.role in page.roles and any(place.matches(words) for place in (page, *page.parts))
            ),
        )
        for group in SETTINGS
    ]
    return [group for group in groups if group.pages]


def settings_page(url_name: str) -> SettingsPage | None:
    """The page of the Settings area to which an address belongs."""
    return next((page for start, page in _OWNED if url_name.startswith(start)), None)


def pages_for(member: Member, words: str = "") -> list[Page]:
    """The pages that this member may open and that match the words."""
    return [page for page in PAGES if member.role in page.roles and page.matches(words)]


def parts_for(member: Member, words: str) -> list[Page]:
    """The single settings that this member may open and that match the words."""
    parts = (part for group in SETTINGS for page in group.pages for part in page.parts)
    return [part for part in parts if member.role in part.roles and part.matches(words)]
