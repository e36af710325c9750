"""Which roles enter which address of the console and the API: one table, in which every address stands.

A role that does not stand beside an address is refused before anything is read, whatever the address is about; so are a
person without a company and somebody who is not logged in. What a role may do with a thing of its own company, and that
another company's thing is not found, is in `test_access.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tests.factories.console import browser

ROLES = ("owner", "approver", "agent", "viewer")
TABLE = {
    ("owner",): """
    console-verify console-export console-webhook-add console-webhook-delete console-begin console-begin-model
    console-begin-knowledge console-begin-sites console-begin-ready console-gates console-gate-new console-gate
    console-gate-edit console-gate-compare console-gate-try console-gate-activate console-gate-roll-back
    console-gate-retire console-knowledge-new console-hand-in console-document-again console-document-delete
    console-members console-invite console-invite-again console-uninvite console-member-role
    console-member-remove console-member-logins console-second-required console-provider console-api-keys
    console-api-key-make console-api-key-revoke console-queue-retry console-queue-drop console-safety-key
    console-safety-policy console-safety-try console-safety-take-back console-safety-roll-back
    console-skill-shipped console-skill-package-trust console-skill-package-refuse console-publisher-pin
    console-publisher-remove console-skill-export console-skill-disable console-skill-roll-back
    console-skill-purge console-spending-resume console-studios console-studio-new console-studio
    console-studio-turn console-studio-key console-studio-key-drop console-install console-tool-servers
    console-web-search console-web-search-remove console-tool-server-new console-tool-program-new
    console-tool-server console-tool-server-refresh console-tool-server-switch console-tool-server-remove
    console-tool-accept console-tool-suspend api-tasks-settings api-webhooks api-webhook api-webhook-deliveries
    api-persona api-persona-preset api-persona-tune api-persona-feedback api-persona-events
    api-gates api-gate api-gate-versions api-gate-diff api-gate-dry-run api-gate-activate api-gate-roll-back
    api-gate-retire api-budgets api-budget api-skills api-skill api-skill-disable api-skill-roll-back
    api-skill-purge api-skill-export api-skill-packages api-skill-package-refuse api-skill-publishers
    api-skill-publisher api-skill-drafts api-skill-draft api-skill-draft-revise api-skill-draft-try
    api-skill-draft-submit api-tool-servers api-tool-server api-tool-server-look api-outside-tool-accept
    api-outside-tool-suspend api-session-card-secret
    """,
    ("owner", "approver"): """
    console-step-up console-key-replace console-alerts console-alerts-choose console-push-add
    console-push-remove console-autonomy console-autonomy-opt console-task-new console-when console-task-edit
    console-task-run console-task-release console-task-delete console-when-add console-when-turn
    console-when-delete console-run-retry console-connections console-connection-new console-connection
    console-connection-sign-in console-connection-done console-connection-cancel console-connection-reconnect
    console-connection-pause console-connection-choose console-connection-resume console-connection-it-request
    console-connection-remove console-connection-widen console-knowledge console-knowledge-try
    console-collection console-document console-queues console-decide console-ask-anew console-assign
    console-take-back console-safety console-safety-step-up console-safety-allow console-safety-code
    console-safety-token console-skills console-skill-add console-skill-package console-publishers
    console-draft-new console-draft console-draft-revise console-draft-rewrite console-draft-try
    console-draft-propose console-draft-delete console-skill console-skill-compare console-spending
    api-connection-pause api-connection-resume api-connection-choose
    """,
    ("owner", "approver", "agent"): """
    console-run-halt console-take-over console-hand-back console-reply console-forget console-ask
    console-ask-back console-resolve console-reopen console-snooze console-assign-conversation console-mark
    console-note console-several console-several-beside console-label-new console-label-save
    console-label-delete console-canned-new console-canned-save console-canned-delete console-withdraw
    console-work-cancel console-work-resume
    api-autonomous-halt
    """,
    ROLES: """
    console-rail console-account console-account-name console-account-language console-account-password
    console-account-app console-account-app-confirm console-account-app-remove console-account-codes
    console-account-passkey-begin console-account-passkey-finish console-account-passkey-remove
    console-logins-end console-login-end console-passkeys console-passkey-begin console-passkey-finish
    console-passkey-remove console-passkey-rename console-activity console-away console-entry console-runs
    console-task console-run console-run-receipt console-notices console-notices-read console-notice-read
    console-inbox console-conversation console-lookers console-labels console-replies console-file console-seen
    console-insights console-insights-file console-palette console-review console-review-news console-card
    console-card-news console-edit console-work console-work-item api-tasks api-tasks-budget api-task
    api-task-runs api-task-run-now api-task-retry api-task-triggers api-task-trigger api-autonomous-sessions
    api-autonomous-session api-autonomous-receipt api-autonomous-retry api-connections
    api-connection api-connection-reconnect
    api-connection-setup api-session-cards api-session-card
    """,
}
# The way in, what every browser may load, and what a visitor or an API key asks for: each has tests of its own.
OPEN = """
    console console-service-worker console-offline console-setup console-login console-welcome console-logout
    console-second console-login-passkey-begin console-login-passkey-finish console-forgotten console-reset
    console-company console-company-go console-company-back console-invitation console-tenant schema docs safety
    widget-sessions widget-offers widget-form widget-files widget-file widget-list widget-transcripts
    widget-transcript widget-card widget-rating
"""
ALLOWED = {name: roles for roles, names in TABLE.items() for name in names.split()}


def routes(patterns: Iterable[URLPattern | URLResolver], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and route of every address below."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, before + str(pattern.pattern))
        else:
            yield str(pattern.name), before + str(pattern.pattern)


ROUTES = {
    name: route for name, route in routes(get_resolver().url_patterns) if route.startswith(("console/", "api/v1/"))
}


def ask(name: str, user: Any) -> Any:
    """The answer about a thing that does not exist, to the first method that the address takes."""
    kinds = {"uuid": str(uuid4()), "int": "1"}
    address = "/" + re.sub(r"<(\w+):\w+>", lambda part: kinds.get(part[1], "none"), ROUTES[name])
    client = browser(user)
    methods = (client.get, client.post, client.patch, client.delete)
    return next(answer for method in methods if (answer := method(address)).status_code != 405)


def is_refused_for_role(answer: Any) -> bool:
    refusal = vars(answer.wsgi_request).get("refusal")
    code = refusal.code if refusal else "forbidden_role" if b"forbidden_role" in getattr(answer, "content", b"") else ""
    return answer.status_code == 403 and code == "forbidden_role"


def test_every_address_is_in_the_table_once() -> None:
    listed = [*OPEN.split(), *(name for names in TABLE.values() for name in names.split())]
    assert sorted(listed) == sorted(ROUTES)


@pytest.mark.parametrize("name", ALLOWED)
def test_address_lets_its_roles_in_and_nobody_else(
    owner: Any, approver: Any, agent: Any, viewer: Any, stranger: Any, name: str
) -> None:
    cast = dict(zip(ROLES, (owner, approver, agent, viewer), strict=True))
    entered = tuple(role for role, user in cast.items() if not is_refused_for_role(ask(name, user)))
    assert entered == ALLOWED[name]
    assert ask(name, stranger).status_code == 403
    assert ask(name, None).status_code in (302, 401)
