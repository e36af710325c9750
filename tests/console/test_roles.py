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

from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests.factories.console import browser

ROLES = ("owner", "approver", "agent", "viewer")
TABLE = {
    ("owner",): """
    console-company-settings api-company console-prices console-price-remove api-model-prices api-model-price
    console-retention console-visitor-limits api-retention api-visitor-limits
    console-spending-policy console-card-timings api-spending-policy api-card-timings api-deployment-card-timings
    console-access-levels console-access-level console-access-level-new console-access-level-delete
    console-approval-policies console-approval-policy console-approval-policy-new console-approval-policy-delete
    console-contact-export api-contact-export console-visitor-export api-session-export
    console-contact-erase api-contact-erase api-contact-forget console-visitor-erase api-session-erase
    console-erasures api-erasures console-erasure api-erasure console-erasure-receipt api-erasure-receipt
    console-imports console-import api-imports api-import
    console-verify console-export console-webhook-add console-webhook-delete console-webhook-test
    console-webhook-replay console-webhook-rotate
    console-begin console-begin-model
    console-begin-knowledge console-begin-sites console-begin-ready console-gates
    console-gate-template console-gate console-gate-edit console-gate-compare console-gate-try
    console-gate-activate console-gate-roll-back
    console-gate-retire console-source-new console-source-run console-source-turn console-source-remove
    console-source-confirm console-search-models-save console-knowledge-new console-hand-in console-document-again
    console-document-delete
    console-members console-invite console-invite-again console-uninvite console-member-role
    console-member-remove console-member-logins console-second-required console-provider console-api-keys
    console-api-key-make console-api-key-rotate console-client-key-add console-client-key-revoke api-client-keys
    api-client-key console-api-key-revoke api-keys api-key api-key-rotate
    console-apps console-app-self-registration
    console-app-register console-app-change console-app-secret console-app-revoke api-oauth-apps
    api-oauth-app api-oauth-app-secret
    console-queue-retry console-queue-drop console-safety-key console-account-channel-policy
    console-safety-policy console-safety-try console-safety-take-back console-safety-roll-back
    console-skill-shipped console-skill-package-trust console-skill-package-refuse console-publisher-pin
    console-publisher-remove console-skill-export console-skill-disable console-skill-roll-back
    console-skill-purge console-spending-resume console-limit-save console-limit-remove
    console-studios console-studio-new console-studio
    console-releases console-release console-release-publish console-release-simulate console-release-rule
    console-release-share console-release-roll-back
    console-studio-compare console-studio-turn console-studio-key console-studio-key-drop console-studio-preference-off
    console-studio-picture console-studio-picture-drop
    console-studio-messages console-studio-message-new console-studio-message console-studio-message-delete
    api-proactive-messages api-proactive-message
    console-install console-tool-servers
    console-web-search console-web-search-remove console-tool-server-new console-tool-program-new
    console-tool-server console-tool-server-refresh console-tool-server-switch console-tool-server-remove
    console-simulation-make console-simulation-start console-simulation-stop
    console-simulation-resume console-simulation-visitor
    api-webhook-rotate api-webhook-test api-webhook-replay
    console-tool-accept console-tool-suspend api-tasks-settings api-webhooks api-webhook api-webhook-deliveries
    api-sources api-source api-source-run api-source-confirm
    api-collections api-collection api-knowledge-search api-documents api-document api-document-version
    api-document-refresh api-submissions api-submission api-search-models
    api-gaps api-gap api-gap-answer api-gap-dismiss api-gap-reopen api-gap-merge
    api-persona api-persona-preset api-persona-tune api-persona-feedback api-persona-events
    api-releases api-release api-release-diff api-release-share api-release-roll-back api-release-rule
    api-gates api-gate api-gate-versions api-gate-diff api-gate-dry-run api-gate-activate api-gate-roll-back
    api-gate-retire api-budgets api-budget api-skills api-skill api-skill-disable api-skill-roll-back
    api-memory-bundle console-memory-bundle console-memory-bundle-export console-memory-bundle-import
    api-skill-purge api-skill-export api-skill-packages api-skill-package-refuse api-skill-publishers
    api-skill-publisher api-skill-drafts api-skill-draft api-skill-draft-revise api-skill-draft-try
    api-skill-draft-submit api-tool-servers api-tool-server api-tool-server-look api-outside-tool-accept
    api-outside-tool-suspend api-session-card-secret
    api-audit-verify api-audit-export api-members api-member api-invitations api-invitation
    api-invitation-resend api-deployments api-deployment
    api-provider-keys api-provider-key api-deployment-logo api-deployment-avatar
    api-deployment-install api-preferences api-preference api-compare-styles
    api-dead-letter-retry api-dead-letter-drop api-spending-resume
    api-safety-policy api-safety-policy-backtest api-web-search
    api-skill-diff api-bundled-skills
    api-simulation-suites api-simulation-suite api-simulation-scenarios api-simulations api-simulation
    api-simulation-stop api-simulation-resume
    console-channels console-channel-new console-channel console-channel-check console-channel-test
    console-channel-switch console-channel-remove
    console-inbox-rule-new console-inbox-rule console-inbox-rule-activate console-inbox-rule-delete
    console-sla-policy-new console-sla-policy console-sla-policy-delete
    console-team-new console-team console-team-delete
    api-card-policy api-channels api-channel-kinds api-channel api-channel-check api-channel-test
    api-channel-messages
    """,
    ("owner", "approver"): """
    console-step-up console-key-replace console-alerts-choose console-push-add
    console-account-channels console-account-channel-code console-account-channel-remove
    console-push-remove console-autonomy console-autonomy-opt console-task-new console-when console-task-edit
    console-gallery-use api-proposal-dismiss api-precedent-dismiss
    console-task-run console-task-release console-task-delete console-when-add console-when-turn
    console-when-delete console-run-retry console-connections console-connection-new console-connection
    console-connection-sign-in console-connection-done console-connection-cancel console-connection-reconnect
    console-connection-pause console-connection-choose console-connection-resume console-connection-it-request
    console-connection-remove console-connection-widen console-knowledge console-knowledge-try
    console-search-models console-sources console-gaps console-gap console-gap-answer console-gap-dismiss
    console-gap-reopen console-gap-merge
    console-collection console-document console-queues console-decide console-ask-anew console-assign
    console-card-ask api-card-question console-draft-preview
    console-simulations console-simulation
    console-take-back console-safety console-safety-step-up console-safety-allow console-safety-code
    console-safety-token console-skills console-skill-add console-skill-package console-publishers
    console-draft-new console-draft console-draft-revise console-draft-rewrite console-draft-try
    console-draft-propose console-draft-delete console-skill console-skill-compare console-spending
    api-queues api-dead-letters api-spending api-card-take-back api-card-edit api-card-assignee
    api-safety-holds api-connection-widen
    console-memory-confirm api-card-decision api-card-links api-card-interrupt-response
    api-connection-pause api-connection-resume api-connection-choose
    """,
    ("owner", "approver", "agent"): """
    console-finding-resolve api-finding-resolve console-alerts console-alerts-notices
    console-run-halt console-take-over console-hand-back console-reply console-send-file console-forget console-ask
    console-assist console-assist-cancel console-assist-seen
    api-session-assistance api-session-assistance-cancel
    console-ask-back console-resolve console-reopen console-snooze console-assign-conversation console-mark
    console-note console-several console-several-beside console-label-new console-label-save
    console-label-delete console-canned-new console-canned-save console-canned-delete console-withdraw
    console-macro-new console-macro console-macro-delete console-macro-run api-session-macros
    console-availability console-conversation-team console-conversation-priority
    console-work-cancel console-work-resume
    api-work-item-cancel api-work-item-resume api-session-visitor-messages api-session-withdraw
    api-session-forget api-autonomous-halt api-memories api-memory api-memory-customer console-memories console-memory
    console-contact-new console-contact-save console-contact-note console-contact-merge console-contact-unmerge
    api-contact-merge api-contact-unmerge api-contact-memories
    console-memory-correct console-memory-pin console-memory-restore console-memory-delete console-memory-customer
    """,
    ROLES: """
    api-events api-event-types
    console-contact-history api-contact-history api-imported-session
    console-list-file console-contacts console-contact api-contacts api-contact api-contact-sessions
    api-contact-consents api-contact-notes
    console-gallery console-artifact-file api-artifacts api-artifact api-artifact-file
    api-findings api-finding api-proposals api-proposal api-precedents api-notices api-notice-read
    console-settings console-theme console-card-question
    console-rail console-account console-account-name console-account-language console-account-password
    console-account-app console-account-app-confirm console-account-app-remove console-account-codes
    console-account-passkey-begin console-account-passkey-finish console-account-passkey-remove
    console-connected-apps console-connected-app-revoke
    console-logins-end console-login-end console-passkeys console-passkey-begin console-passkey-finish
    console-passkey-remove console-passkey-rename console-activity console-away console-entry console-runs
    console-task console-run console-run-receipt console-notices console-notices-read console-notice-read
    console-views console-view-new console-view-save console-view-delete api-saved-views api-saved-view
    console-inbox-rules api-inbox-rules api-inbox-rule
    console-sla-policies api-sla-policies api-sla-policy
    console-macros api-macros console-teams api-teams api-team api-availability api-member-availability
    api-session-read-state console-mark-unread
    console-inbox console-conversation console-lookers console-labels console-replies console-file console-seen
    console-insights console-insights-file console-palette console-review console-review-news console-card
    console-card-news console-card-parts console-edit console-work console-work-item api-tasks api-tasks-budget api-task
    api-task-templates
    api-task-runs api-task-run-now api-task-retry api-task-triggers api-task-trigger api-autonomous-sessions
    api-autonomous-session api-autonomous-receipt api-autonomous-retry api-connections
    api-connection api-connection-reconnect
    api-connection-setup api-session-cards api-session-card
    api-cards api-card api-card-interrupt api-work-items api-work-item api-audit api-audit-entry api-insights
    api-session-files api-session-file api-session-trace
    api-sessions api-session api-session-messages api-session-notes api-labels api-canned-replies
    api-label api-canned-reply api-macro
    """,
}
# The way in, what every browser may load, and what a visitor or an API key asks for: each has tests of its own.
OPEN = """
    console console-service-worker console-offline console-setup console-login console-welcome console-logout
    console-second console-login-passkey-begin console-login-passkey-finish console-forgotten console-reset
    console-company console-company-go console-company-back console-invitation console-tenant schema docs safety
    widget-sessions widget-offers widget-form widget-files widget-file widget-list widget-transcripts
    widget-transcript widget-card widget-rating widget-email-answers widget-continue widget-article
    widget-article-search api-agents-agui
    api-agents-a2a api-agents-a2a-card
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


def ask(name: str, client: Client) -> Any:
    """The answer about a thing that does not exist, to the first method that the address takes."""
    kinds = {"uuid": str(uuid4()), "int": "1"}
    address = "/" + re.sub(r"<(\w+):\w+>", lambda part: kinds.get(part[1], "none"), ROUTES[name])
    methods = (client.get, client.post, client.put, client.patch, client.delete)
    answer = next(answer for method in methods if (answer := method(address)).status_code != 405)
    if answer.streaming:
        answer.close()
    return answer


def is_refused_for_role(answer: Any) -> bool:
    refusal = vars(answer.wsgi_request).get("refusal")
    code = refusal.code if refusal else "forbidden_role" if b"forbidden_role" in getattr(answer, "content", b"") else ""
    return answer.status_code == 403 and code == "forbidden_role"


def test_every_address_is_in_the_table_once() -> None:
    listed = [*OPEN.split(), *(name for names in TABLE.values() for name in names.split())]
    assert sorted(listed) == sorted(ROUTES)


def test_address_lets_its_roles_in_and_nobody_else(
    owner: Any, approver: Any, agent: Any, viewer: Any, stranger: Any
) -> None:
    cast = dict(zip(ROLES, map(browser, (owner, approver, agent, viewer)), strict=True))
    outside, nobody = browser(stranger), browser()
    entered, refused = {}, {}
    for name in ALLOWED:
        entered[name] = tuple(role for role, client in cast.items() if not is_refused_for_role(ask(name, client)))
        refused[name] = (ask(name, outside).status_code, ask(name, nobody).status_code in (302, 401))
    assert entered == ALLOWED
    assert set(refused.values()) == {(403, True)}
