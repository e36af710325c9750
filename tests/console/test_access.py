"""Access to what the console shows, for every role and for members of other tenants.

Which roles may enter which address at all is the table in `test_roles.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, reverse

from apps.console.urls import urlpatterns
from apps.tenants.models import Membership
from apps.tenants.rules import TENANT_IN_SESSION
from kernel.tenancy import tenant_scope
from tests.factories.console import HTMX, browser, make_card
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment, make_member

ROLES = ["owner", "approver", "agent", "viewer"]
PASSWORD = {"password": "a-long-password"}
READS = [
    "console-review",
    "console-review-news",
    "console-card",
    "console-card-news",
    "console-card-parts",
    "console-inbox",
    "console-conversation",
    "console-rail",
]
READS += ["console-activity", "console-entry", "console-passkeys", "console-insights", "console-edit"]
READS += ["console-card-question"]
READS += ["console-work", "console-insights-file"]
READS += ["console-palette", "console-away", "console-account", "console-settings"]
OWNERS_ONLY = ["console-members", "console-member-logins", "console-api-keys", "console-apps"]
OWNERS_ONLY += ["console-retention", "console-visitor-limits", "console-company-settings", "console-prices"]
OWNERS_ONLY += ["console-spending-policy", "console-card-timings"]
OWNERS_ONLY += ["console-access-levels", "console-access-level-new"]
OWNERS_ONLY += ["console-approval-policies", "console-approval-policy-new"]
READS += ["console-lookers", "console-labels", "console-replies"]
WRITES = {
    "console-decide": ({"choice": "decline"}, {"owner", "approver"}),
    "console-take-back": ({"reason": "Another call."}, {"owner", "approver"}),
    "console-assign": ({"to": ""}, {"owner", "approver"}),
    "console-ask-anew": ({}, {"owner", "approver"}),
    "console-card-ask": ({"text": "Which flat?"}, {"owner", "approver"}),
    "console-withdraw": ({}, {"owner", "approver", "agent"}),
    "console-take-over": ({}, {"owner", "approver", "agent"}),
    "console-hand-back": ({}, {"owner", "approver", "agent"}),
    "console-forget": ({}, {"owner", "approver", "agent"}),
    "console-reply": ({"text": "Hello"}, {"owner", "approver", "agent"}),
    "console-mark-unread": ({}, {"owner", "approver", "agent", "viewer"}),
    "console-resolve": ({}, {"owner", "approver", "agent"}),
    "console-reopen": ({}, {"owner", "approver", "agent"}),
    "console-snooze": ({"until": "week"}, {"owner", "approver", "agent"}),
    "console-assign-conversation": ({"to": ""}, {"owner", "approver", "agent"}),
    "console-mark": ({"on": "x"}, {"owner", "approver", "agent"}),
    "console-note": ({"text": "Hello"}, {"owner", "approver", "agent"}),
    "console-several": ({}, {"owner", "approver", "agent"}),
    "console-several-beside": ({}, {"owner", "approver", "agent"}),
    "console-availability": ({"away": "1"}, {"owner", "approver", "agent"}),
    "console-conversation-team": ({"team": ""}, {"owner", "approver", "agent"}),
    "console-conversation-priority": ({"priority": "low"}, {"owner", "approver", "agent"}),
    "console-label-new": ({"name": "Refunds", "colour": "red"}, {"owner", "approver", "agent"}),
    "console-label-save": ({"name": "Refunds", "colour": "red"}, {"owner", "approver", "agent"}),
    "console-label-delete": ({}, {"owner", "approver", "agent"}),
    "console-canned-new": ({"name": "hi", "text": "Hello"}, {"owner", "approver", "agent"}),
    "console-canned-save": ({"name": "hi", "text": "Hello"}, {"owner", "approver", "agent"}),
    "console-canned-delete": ({}, {"owner", "approver", "agent"}),
    "console-verify": ({}, {"owner"}),
    "console-step-up": ({}, {"owner", "approver"}),
    "console-passkey-begin": (PASSWORD, set(ROLES)),
    "console-passkey-finish": ({}, set(ROLES)),
    "console-passkey-remove": (PASSWORD, set(ROLES)),
    "console-passkey-rename": ({"name": "Mine"}, set(ROLES)),
    "console-key-replace": (PASSWORD, {"owner", "approver"}),
    "console-export": ({}, {"owner"}),
    "console-queue-retry": ({}, {"owner"}),
    "console-queue-drop": ({}, {"owner"}),
    "console-limit-save": ({}, {"owner"}),
    "console-spending-resume": ({}, {"owner"}),
    "console-work-cancel": ({}, {"owner", "approver", "agent"}),
    "console-work-resume": ({}, {"owner", "approver", "agent"}),
    "console-account-name": ({}, set(ROLES)),
    "console-account-language": ({}, set(ROLES)),
    "console-theme": ({"theme": "dark"}, set(ROLES)),
    "console-account-password": (PASSWORD, set(ROLES)),
    "console-account-app": (PASSWORD, set(ROLES)),
    "console-account-app-remove": (PASSWORD, set(ROLES)),
    "console-account-codes": (PASSWORD, set(ROLES)),
    "console-account-app-confirm": ({}, set(ROLES)),
    "console-account-passkey-begin": (PASSWORD, set(ROLES)),
    "console-account-passkey-finish": ({}, set(ROLES)),
    "console-account-passkey-remove": (PASSWORD, set(ROLES)),
    "console-login-end": ({}, set(ROLES)),
    "console-logins-end": ({}, set(ROLES)),
    "console-invite": ({}, {"owner"}),
    "console-invite-again": ({}, {"owner"}),
    "console-uninvite": ({}, {"owner"}),
    "console-member-role": ({"role": "viewer"}, {"owner"}),
    "console-member-remove": ({}, {"owner"}),
    "console-second-required": ({}, {"owner"}),
    "console-provider": ({}, {"owner"}),
    "console-app-self-registration": ({}, {"owner"}),
    "console-api-key-make": ({}, {"owner"}),
    "console-api-key-rotate": ({"hours": "24"}, {"owner"}),
    "console-api-key-revoke": ({}, {"owner"}),
    "console-client-key-add": ({"public_key": "ab"}, {"owner"}),
    "console-client-key-revoke": ({}, {"owner"}),
}
GATE_PAGES = ("", "-template", "-edit", "-compare", "-try", "-activate", "-roll-back", "-retire")
ABOUT_NOTHING = {name for name in WRITES if name.startswith(("console-queue-", "console-work-"))}
ABOUT_NOTHING |= {"console-passkey-remove", "console-passkey-rename"}
ABOUT_NOTHING |= {"console-account-passkey-remove", "console-login-end", "console-invite-again", "console-uninvite"}
ABOUT_NOTHING |= {"console-member-role", "console-member-remove", "console-api-key-rotate"}
ABOUT_NOTHING |= {"console-api-key-revoke", "console-client-key-add", "console-client-key-revoke"}
ABOUT_NOTHING |= {f"console-{what}-{verb}" for what in ("label", "canned") for verb in ("save", "delete")}
# Not every member sees the queues (test_queues), the money (test_spending) or gates (test_gates), and an item needs a
# desk (test_work).
TRIED_ELSEWHERE = {"console-queues", "console-spending", "console-work-item"}
TRIED_ELSEWHERE |= {"console-limit-remove"}  # a limit (test_spending)
TRIED_ELSEWHERE |= {"console-price-remove"}  # a price (guard/test_own_prices)
TRIED_ELSEWHERE |= {"console-teams", "console-team", "console-team-new", "console-team-delete"}  # console/test_teams
TRIED_ELSEWHERE |= {
    "console-inbox-rules",
    *(f"console-inbox-rule{word}" for word in ("", "-new", "-activate", "-delete")),
}
# inbox/test_sla
TRIED_ELSEWHERE |= {"console-sla-policies", *(f"console-sla-policy{word}" for word in ("", "-new", "-delete"))}
TRIED_ELSEWHERE |= {"console-macros", *(f"console-macro{word}" for word in ("", "-new", "-delete", "-run"))}
# inbox/test_saved_views
TRIED_ELSEWHERE |= {"console-views", *(f"console-view-{word}" for word in ("new", "save", "delete"))}
# console/test_policies
TRIED_ELSEWHERE |= {f"console-{what}{verb}" for what in ("access-level", "approval-policy") for verb in ("", "-delete")}
TRIED_ELSEWHERE |= {"console-seen"}  # a turn that has ended (test_seen)
TRIED_ELSEWHERE |= {"console-file"}  # a file that a visitor sent (visitors/test_files)
TRIED_ELSEWHERE |= {"console-send-file"}  # one of staff (inbox/test_staff_files)
TRIED_ELSEWHERE |= {"console-assist", "console-assist-cancel", "console-assist-seen"}  # copilot/test_pages
TRIED_ELSEWHERE |= {"console-gates", *(f"console-gate{word}" for word in GATE_PAGES)}
# Automations and notifications (test_runs, test_tasks, test_autonomy).
TRIED_ELSEWHERE |= {"console-runs", "console-run", *(f"console-run-{word}" for word in ("halt", "receipt", "retry"))}
TRIED_ELSEWHERE |= {"console-task", *(f"console-task-{word}" for word in ("new", "edit", "run", "release", "delete"))}
TRIED_ELSEWHERE |= {"console-when", *(f"console-when-{word}" for word in ("add", "turn", "delete"))}
TRIED_ELSEWHERE |= {"console-autonomy", "console-autonomy-opt", "console-webhook-add", "console-webhook-delete"}
TRIED_ELSEWHERE |= {f"console-webhook-{do}" for do in ("test", "replay", "rotate")}  # console/test_autonomy
TRIED_ELSEWHERE |= {"console-notices", "console-notice-read", "console-notices-read"}
# Ready automations and what they found (test_gallery).
TRIED_ELSEWHERE |= {"console-gallery", "console-gallery-use", "console-finding-resolve"}
TRIED_ELSEWHERE |= {"console-artifact-file"}  # autonomy/test_artifacts
# Chatbots, what they know and the way to the first one (test_studio_settings, test_knowledge_pages, test_first_run).
TRIED_ELSEWHERE |= {"console-studios", "console-studio", "console-install", "console-knowledge", "console-collection"}
TRIED_ELSEWHERE |= {f"console-studio-message{word}" for word in ("s", "", "-new", "-delete")}
TRIED_ELSEWHERE |= {f"console-studio-{word}" for word in ("new", "turn", "key", "key-drop", "compare")}
TRIED_ELSEWHERE |= {"console-hand-in", *(f"console-knowledge-{word}" for word in ("new", "try"))}
TRIED_ELSEWHERE |= {"console-search-models", "console-search-models-save"}  # knowledge/test_provider_vectors
TRIED_ELSEWHERE |= {"console-sources", *(f"console-source-{word}" for word in ("new", "run", "turn", "remove"))}
TRIED_ELSEWHERE |= {"console-source-confirm"}  # test_source_kinds
TRIED_ELSEWHERE |= {f"console-gap{word}" for word in ("s", "", "-answer", "-dismiss", "-reopen", "-merge")}  # test_gaps
TRIED_ELSEWHERE |= {"console-draft-preview"}  # test_cards
TRIED_ELSEWHERE |= {"console-document", *(f"console-document-{word}" for word in ("again", "delete"))}
TRIED_ELSEWHERE |= {"console-begin", *(f"console-begin-{word}" for word in ("model", "knowledge", "sites", "ready"))}
TRIED_ELSEWHERE |= {
    "console-account-channels",
    *(f"console-account-channel-{do}" for do in ("code", "remove", "policy")),
}
TRIED_ELSEWHERE |= {"console-alerts", *(f"console-alerts-{do}" for do in ("choose", "notices"))}  # test_push
TRIED_ELSEWHERE |= {"console-push-add", "console-push-remove"}  # test_push
# Releases, simulations and memory (test_releases, test_simulations, test_memory_pages).
TRIED_ELSEWHERE |= {"console-releases", *(f"console-release{word}" for word in ("", "-publish", "-roll-back", "-rule"))}
TRIED_ELSEWHERE |= {"console-studio-picture", "console-studio-picture-drop"}
TRIED_ELSEWHERE |= {"console-release-share", "console-release-simulate", "console-studio-preference-off"}
TRIED_ELSEWHERE |= {
    "console-simulations",
    *(f"console-simulation{word}" for word in ("", "-make", "-start", "-stop", "-resume", "-visitor")),
}
TRIED_ELSEWHERE |= {
    "console-memories",
    *(f"console-memory{word}" for word in ("", "-confirm", "-correct", "-customer")),
}
TRIED_ELSEWHERE |= {f"console-memory-{word}" for word in ("delete", "pin", "restore")}
TRIED_ELSEWHERE |= {f"console-memory-bundle{word}" for word in ("", "-export", "-import")}
TRIED_ELSEWHERE |= {"console-imports", "console-import", "console-contact-history"}  # imports/test_imports
TRIED_ELSEWHERE |= {
    f"console-{word}" for word in ("app-register", "app-change", "app-secret", "app-revoke")
}  # tenants/test_oauth
TRIED_ELSEWHERE |= {"console-connected-app-revoke"}
READS += ["console-connected-apps"]
TRIED_ELSEWHERE |= {"console-list-file"}  # test_exports
TRIED_ELSEWHERE |= {"console-contacts", "console-contact", "console-contact-new"}  # contacts/test_contacts
TRIED_ELSEWHERE |= {f"console-contact-{word}" for word in ("save", "note", "merge", "unmerge", "erase", "export")}
TRIED_ELSEWHERE |= {"console-visitor-export", "console-visitor-erase", "console-erasures"}  # contacts/test_erasure
TRIED_ELSEWHERE |= {"console-erasure", "console-erasure-receipt"}
# Who decides sees what agents intend, and owners say what they may (test_safety).
TRIED_ELSEWHERE |= {f"console-safety{word}" for word in ("", "-key", "-policy", "-try", "-roll-back", "-take-back")}
TRIED_ELSEWHERE |= {f"console-safety-{word}" for word in ("allow", "code", "token", "step-up")}
# Who decides sees what the bots can do and has it written, and owners say what stays (test_skills).
TRIED_ELSEWHERE |= {"console-skills", *(f"console-skill{word}" for word in ("", "-compare", "-add", "-export"))}
TRIED_ELSEWHERE |= {f"console-skill-{word}" for word in ("disable", "roll-back", "purge", "shipped", "package")}
TRIED_ELSEWHERE |= {"console-publishers", "console-publisher-pin", "console-publisher-remove"}
TRIED_ELSEWHERE |= {"console-skill-package-trust", "console-skill-package-refuse", "console-draft"}
TRIED_ELSEWHERE |= {f"console-draft-{word}" for word in ("new", "revise", "rewrite", "try", "propose", "delete")}
# Questions to visitors (test_ask) and connected accounts (test_connections).
TRIED_ELSEWHERE |= {"console-ask", "console-ask-back"}
TRIED_ELSEWHERE |= {"console-connections", *(f"console-connection{word}" for word in ("", "-new", "-cancel"))}
TRIED_ELSEWHERE |= {f"console-connection-{word}" for word in ("sign-in", "reconnect", "pause", "resume", "remove")}
TRIED_ELSEWHERE |= {f"console-connection-{word}" for word in ("widen", "choose", "it-request", "done")}
# Channels, for owners (messengers/test_console).
TRIED_ELSEWHERE |= {"console-channels", *(f"console-channel{word}" for word in ("", "-new", "-check", "-test"))}
TRIED_ELSEWHERE |= {"console-channel-switch", "console-channel-remove"}
# External tools, for owners (test_tool_servers).
TRIED_ELSEWHERE |= {
    "console-web-search",
    "console-web-search-remove",
    "console-tool-servers",
    "console-tool-accept",
    "console-tool-program-new",
    "console-tool-suspend",
}
TRIED_ELSEWHERE |= {f"console-tool-server{word}" for word in ("", "-new", "-refresh", "-switch", "-remove")}
CARDS = {"console-card", "console-card-news", "console-edit", "console-card-question", "console-card-ask"}
CARDS |= {"console-decide", "console-take-back", "console-step-up", "console-assign", "console-ask-anew"}
ABOUT_A_CONVERSATION = {"console-conversation", "console-take-over", "console-hand-back", "console-reply"}
ABOUT_A_CONVERSATION |= {"console-withdraw", "console-forget", "console-lookers"}
DESK = ["console-resolve", "console-reopen", "console-snooze", "console-assign-conversation", "console-note"]
ABOUT_A_CONVERSATION |= {*DESK, "console-mark", "console-several-beside"}
ABOUT_A_CONVERSATION |= {"console-mark-unread"}
ABOUT_A_CONVERSATION |= {"console-conversation-team", "console-conversation-priority"}
OPEN = {"console-setup", "console-login", "console-welcome", "console-logout", "console", "console-tenant"}
OPEN |= {"console-service-worker", "console-offline"}
# The steps of a login (test_accounts_*).
OPEN |= {"console-second", "console-login-passkey-begin", "console-login-passkey-finish", "console-forgotten"}
OPEN |= {"console-reset", "console-company", "console-company-go", "console-company-back", "console-invitation"}


def _address(name: str, tenant: Any) -> str:
    """The address of this name, about a new card or conversation of `tenant`."""
    if name in ABOUT_NOTHING:
        return reverse(name, args=[uuid4()])
    if name in CARDS:
        return reverse(name, args=[make_card(tenant).pk])
    if name == "console-entry":
        make_card(tenant)
        return reverse(name, args=[1])
    if name in ABOUT_A_CONVERSATION:
        session = make_session(make_deployment(tenant))
        say(session, "Hello")
        return reverse(name, args=[session.pk])
    if name == "console-review-news":
        make_card(tenant)
    return reverse(name)


def _names(patterns: Iterable[URLPattern | URLResolver]) -> Iterator[str]:
    """Yield the names of all addresses, including those of the pages."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _names(pattern.url_patterns)
        else:
            yield str(pattern.name)


def test_every_address_is_tried_here() -> None:
    assert set(_names(urlpatterns)) == {*READS, *WRITES, *OPEN, *OWNERS_ONLY, *TRIED_ELSEWHERE}


@pytest.fixture
def cast(owner: Any, approver: Any, agent: Any, viewer: Any) -> dict[str, Client]:
    """A browser of each role; who may do the most comes last, because it changes what the others would find."""
    return {"viewer": browser(viewer), "agent": browser(agent), "approver": browser(approver), "owner": browser(owner)}


def test_pages_are_shown_to_every_member(tenant: Any, cast: dict[str, Client]) -> None:
    addresses = {name: _address(name, tenant) for name in READS}
    wrong = {
        (name, role): status
        for name, address in addresses.items()
        for role, client in cast.items()
        if (status := client.get(address).status_code) != 200
    }
    assert wrong == {}


def test_pages_for_owners_are_refused_to_others(tenant: Any, cast: dict[str, Client]) -> None:
    wrong = {
        (name, role): status
        for name in OWNERS_ONLY
        for role, client in cast.items()
        if (status := client.get(reverse(name)).status_code) != (200 if role == "owner" else 403)
    }
    assert wrong == {}


@pytest.mark.parametrize("name", WRITES)
def test_press_is_allowed_to_the_right_roles_only(tenant: Any, cast: dict[str, Client], name: str) -> None:
    data, allowed = WRITES[name]
    statuses = {role: client.post(_address(name, tenant), data).status_code for role, client in cast.items()}
    assert {role for role, status in statuses.items() if status != 403} == allowed, statuses


def test_addresses_without_login_lead_to_the_login(tenant: Any) -> None:
    led = {}
    for name in [*READS, *OWNERS_ONLY, *WRITES, "console"]:
        address = _address(name, tenant)
        response = browser().get(address) if name not in WRITES else browser().post(address)
        led[address] = response.headers.get("Location")
    assert led == {address: f"{reverse('console-login')}?next={address}" for address in led}


def test_console_is_refused_to_a_stranger(stranger: Any) -> None:
    assert browser(stranger).get(reverse("console")).status_code == 403


def test_switch_of_companies_is_refused_to_a_stranger(stranger: Any) -> None:
    assert browser(stranger).post(reverse("console-tenant")).status_code == 403


@pytest.mark.parametrize("name", ["console-card", "console-card-news", "console-conversation", "console-lookers"])
def test_page_of_another_tenants_thing_is_not_found(tenant: Any, other_tenant: Any, name: str) -> None:
    foreigner = make_member(other_tenant, "owner")
    assert browser(foreigner).get(_address(name, tenant)).status_code == 404


@pytest.mark.parametrize("name", ["console-decide", "console-take-over", "console-hand-back", "console-reply", *DESK])
def test_press_on_another_tenants_thing_is_not_found(tenant: Any, other_tenant: Any, name: str) -> None:
    foreigner = make_member(other_tenant, "owner")
    assert browser(foreigner).post(_address(name, tenant), WRITES[name][0]).status_code == 404


@pytest.mark.parametrize("name", ["console-card", "console-conversation", "console-decide"])
def test_unknown_id_looks_like_a_foreign_one(tenant: Any, owner: Any, name: str) -> None:
    client, address = browser(owner), reverse(name, args=[uuid4()])
    response = client.post(address, {"choice": "decline"}) if name in WRITES else client.get(address)
    assert response.status_code == 404


def test_list_shows_nothing_of_another_tenant(tenant: Any, other_tenant: Any) -> None:
    make_card(tenant, intent="Secret of the first tenant")
    page = browser(make_member(other_tenant, "owner")).get(reverse("console-review"))
    assert "Secret of the first tenant" not in page.content.decode()


def test_activity_shows_nothing_of_another_tenant(tenant: Any, other_tenant: Any) -> None:
    make_card(tenant, intent="Secret of the first tenant")
    page = browser(make_member(other_tenant, "owner")).get(reverse("console-activity"))
    assert "Secret of the first tenant" not in page.content.decode()


# Their answers show a key once; who loads one again is led away from it.
SHOW_A_KEY = {"console-api-key-make", "console-api-key-rotate"}


def test_presses_by_get_are_not_allowed(tenant: Any, owner: Any) -> None:
    client = browser(owner)
    wrong = {
        name: status
        for name in WRITES
        if (status := client.get(_address(name, tenant)).status_code) != (302 if name in SHOW_A_KEY else 405)
    }
    assert wrong == {}


def test_presses_without_csrf_token_are_refused(tenant: Any, owner: Any) -> None:
    client = browser(owner, csrf=True)
    wrong = {
        name: status
        for name in [*WRITES, "console-login", "console-logout", "console-tenant"]
        if (status := client.post(_address(name, tenant), {"choice": "decline"}).status_code) != 403
    }
    assert wrong == {}


def test_htmx_request_without_login_is_told_to_go_there(tenant: Any) -> None:
    response = browser().get(reverse("console-rail"), **HTMX)
    assert response.status_code == 401
    assert response["HX-Redirect"][:15] == "/console/login/"


def test_refusal_for_htmx_goes_to_the_notice(tenant: Any, viewer: Any) -> None:
    response = browser(viewer).post(_address("console-decide", tenant), {"choice": "decline"}, **HTMX)
    assert response.status_code == 403
    assert response["HX-Retarget"] == "#notice"


def test_pages_have_no_inline_script_or_style(tenant: Any, owner: Any) -> None:
    client, inline = browser(owner), re.compile(r"<style|style=|<script(?![^>]*\bsrc=)|\son\w+=|javascript:")
    found = {}
    for name in [*READS, *OWNERS_ONLY, "console-login", "console-offline"]:
        page = b"".join((browser() if name == "console-login" else client).get(_address(name, tenant))).decode()
        found[name] = inline.findall(page)
    assert {name: parts for name, parts in found.items() if parts} == {}


def test_page_allows_scripts_of_its_own_only(owner: Any) -> None:
    policy = browser(owner).get(reverse("console-review"))["Content-Security-Policy"]
    assert "script-src 'self';" in f"{policy};"


def test_page_is_kept_by_no_cache(owner: Any) -> None:
    assert "no-store" in browser(owner).get(reverse("console-review"))["Cache-Control"]


def test_switch_to_own_other_tenant_opens_it(tenant: Any, other_tenant: Any, owner: Any) -> None:
    with tenant_scope(other_tenant):
        Membership.objects.create(user=owner, role="viewer")
    client = browser(owner)
    client.post(reverse("console-tenant"), {"tenant": other_tenant.slug})
    assert other_tenant.name in client.get(reverse("console-inbox")).content.decode()


def test_switch_to_foreign_tenant_is_not_found(tenant: Any, other_tenant: Any, owner: Any) -> None:
    assert browser(owner).post(reverse("console-tenant"), {"tenant": other_tenant.slug}).status_code == 404


def test_foreign_tenant_in_the_session_is_not_opened(tenant: Any, other_tenant: Any, owner: Any) -> None:
    client = browser(owner)
    session = client.session
    session[TENANT_IN_SESSION] = str(other_tenant.pk)
    session.save()
    assert tenant.name in client.get(reverse("console-inbox")).content.decode()


def test_role_in_the_open_tenant_counts_and_no_other(tenant: Any, other_tenant: Any, owner: Any) -> None:
    """An owner here who only looks on there decides nothing there."""
    with tenant_scope(other_tenant):
        Membership.objects.create(user=owner, role="viewer")
    client = browser(owner)
    client.post(reverse("console-tenant"), {"tenant": other_tenant.slug})
    address = reverse("console-decide", args=[make_card(other_tenant).pk])
    assert client.post(address, {"choice": "decline"}).status_code == 403
