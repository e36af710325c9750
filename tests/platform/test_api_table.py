"""What the console can do a program can do: each address of the console, and the operation of the API that does it.

Every address stands in exactly one of the three tables. `OPERATIONS` names the operations of docs/openapi.yaml,
`NO_API` says why a program has no need of an address, and `MISSING` lists what the API does not have yet.
"""

from __future__ import annotations

import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from tests.console.test_roles import ALLOWED, ROUTES

OPERATIONS = {
    # Account and notifications
    "console-notices": "notices_list",
    "console-notices-read": "notices_list notices_mark_read",
    "console-notice-read": "notices_mark_read",
    "console-account-channel-policy": "card_policy_get card_policy_edit",
    # Activity
    "console-activity": "audit_list",
    "console-entry": "audit_get",
    "console-verify": "audit_verify",
    "console-export": "audit_export",
    # Automations
    "console-runs": "autonomous_sessions_list tasks_list",
    "console-gallery": "task_templates_list findings_list",
    "console-gallery-use": "tasks_create tasks_run_now",
    "console-finding-resolve": "findings_resolve",
    "console-artifact-file": "artifacts_download",
    "console-webhook-add": "webhooks_create",
    "console-webhook-delete": "webhooks_delete",
    "console-webhook-replay": "webhooks_replay",
    "console-webhook-rotate": "webhooks_rotate_secret",
    "console-webhook-test": "webhooks_test",
    "console-task-new": "tasks_create",
    "console-task": "tasks_read tasks_runs tasks_triggers_list",
    "console-task-edit": "tasks_change",
    "console-task-run": "tasks_run_now",
    "console-task-release": "tasks_retry",
    "console-task-delete": "tasks_delete",
    "console-when-add": "tasks_triggers_create",
    "console-when-turn": "tasks_triggers_change",
    "console-when-delete": "tasks_triggers_delete",
    "console-run": "autonomous_sessions_read artifacts_list",
    "console-run-receipt": "autonomous_sessions_receipt",
    "console-run-halt": "autonomous_sessions_halt",
    "console-run-retry": "autonomous_sessions_retry",
    # Channels
    "console-channels": "channels_list channel_kinds_list",
    "console-channel-new": "channels_create",
    "console-channel": "channels_get channels_edit channel_messages_list",
    "console-channel-check": "channels_check",
    "console-channel-test": "channels_test",
    "console-channel-switch": "channels_edit",
    "console-channel-remove": "channels_delete",
    "console-autonomy": "scheduler_read scheduler_change webhooks_list",
    # Connections
    "console-connections": "connections_list",
    "console-connection-new": "connections_create",
    "console-connection": "connection connection_setup",
    "console-connection-cancel": "connection_setup_cancel",
    "console-connection-reconnect": "connection_reconnect",
    "console-connection-pause": "connection_pause",
    "console-connection-choose": "connection_choose",
    "console-connection-resume": "connection_resume",
    "console-connection-remove": "connection_remove",
    "console-connection-done": "connection_setup_answer",
    "console-connection-widen": "connection_widen",
    # Contacts
    "console-contacts": "contacts_list",
    "console-contact-new": "contacts_create",
    "console-imports": "imports_list imports_create",
    "console-import": "imports_get",
    "console-contact-history": "imported_sessions_get",
    "console-contact": "contacts_get contact_sessions_list contact_memories_list contact_consents_list",
    "console-contact-save": "contacts_edit",
    "console-contact-note": "contact_notes_create",
    "console-contact-merge": "contacts_merge",
    "console-contact-unmerge": "contacts_unmerge",
    "console-contact-erase": "contacts_erase contacts_forget",
    "console-contact-export": "contacts_export",
    "console-visitor-export": "sessions_export",
    "console-visitor-erase": "sessions_erase",
    "console-erasures": "erasures_list",
    "console-erasure": "erasures_get",
    "console-erasure-receipt": "erasures_receipt",
    # Gates
    "console-gates": "gates_list",
    "console-gate-template": "gates_create",
    "console-gate": "gates_read",
    "console-gate-edit": "gates_write_version",
    "console-gate-compare": "gates_diff",
    "console-gate-try": "gates_dry_run",
    "console-gate-activate": "gates_activate",
    "console-gate-roll-back": "gates_roll_back",
    "console-gate-retire": "gates_retire",
    # Inbox
    "console-inbox": "sessions_list",
    "console-conversation": "sessions_get session_messages_list session_notes_list",
    "console-take-over": "sessions_edit",
    "console-hand-back": "sessions_edit",
    "console-reply": "session_messages_create",
    "console-forget": "sessions_forget",
    "console-file": "session_files_list session_files_download",
    "console-send-file": "session_files_create",
    "console-seen": "session_turns_trace",
    "console-ask": "session_cards_create",
    "console-assist": "session_assistance_list session_assistance_create",
    "console-assist-cancel": "session_assistance_cancel",
    "console-assist-seen": "session_assistance_list",
    "console-ask-back": "session_card_withdraw",
    "console-mark-unread": "session_read_state_set session_read_state_get",
    "console-resolve": "sessions_edit",
    "console-reopen": "sessions_edit",
    "console-snooze": "sessions_edit",
    "console-assign-conversation": "sessions_edit",
    "console-mark": "sessions_edit",
    "console-note": "session_notes_create",
    "console-several": "sessions_edit",
    "console-several-beside": "sessions_edit",
    "console-views": "saved_views_list saved_views_get",
    "console-view-new": "saved_views_create",
    "console-view-save": "saved_views_replace",
    "console-view-delete": "saved_views_delete",
    "console-macros": "macros_list",
    "console-macro-new": "macros_create",
    "console-macro": "macros_replace",
    "console-macro-delete": "macros_delete",
    "console-macro-run": "session_macros_run",
    "console-inbox-rules": "inbox_rules_list",
    "console-inbox-rule-new": "inbox_rules_create",
    "console-inbox-rule": "inbox_rules_get inbox_rules_edit",
    "console-inbox-rule-activate": "inbox_rules_edit",
    "console-inbox-rule-delete": "inbox_rules_delete",
    "console-sla-policies": "sla_policies_list",
    "console-sla-policy-new": "sla_policies_create",
    "console-sla-policy": "sla_policies_get sla_policies_edit",
    "console-sla-policy-delete": "sla_policies_delete",
    "console-teams": "teams_list availability_list",
    "console-team-new": "teams_create",
    "console-team": "teams_get teams_replace",
    "console-team-delete": "teams_delete",
    "console-availability": "availability_set",
    "console-conversation-team": "sessions_edit",
    "console-conversation-priority": "sessions_edit",
    "console-labels": "labels_list",
    "console-label-new": "labels_create",
    "console-label-save": "labels_replace",
    "console-label-delete": "labels_delete",
    "console-replies": "canned_replies_list",
    "console-canned-new": "canned_replies_create",
    "console-canned-save": "canned_replies_replace",
    "console-canned-delete": "canned_replies_delete",
    # Insights
    "console-insights": "insights_get",
    "console-insights-file": "insights_get",
    # Knowledge
    "console-knowledge": "collections_list",
    "console-knowledge-new": "collections_create",
    "console-knowledge-try": "knowledge_search",
    "console-search-models": "search_models_get",
    "console-search-models-save": "search_models_set",
    "console-collection": "collections_get documents_list submissions_list",
    "console-hand-in": "submissions_create",
    "console-document": "documents_get document_versions_get",
    "console-document-again": "documents_refresh",
    "console-document-delete": "documents_delete",
    "console-sources": "sources_list",
    "console-source-new": "source_add",
    "console-source-run": "source_run",
    "console-source-confirm": "source_confirm",
    "console-source-turn": "source_change",
    "console-source-remove": "source_remove",
    "console-gaps": "gaps_list",
    "console-gap": "gap_read",
    "console-gap-answer": "gap_answer",
    "console-gap-dismiss": "gap_dismiss",
    "console-gap-reopen": "gap_reopen",
    "console-gap-merge": "gap_merge",
    # Members and keys
    "console-members": "members_list invitations_list",
    "console-invite": "invitations_create",
    "console-invite-again": "invitations_resend",
    "console-uninvite": "invitations_revoke",
    "console-member-role": "members_change",
    "console-member-remove": "members_remove",
    "console-api-keys": "api_keys_list client_keys_list",
    "console-api-key-make": "api_keys_create",
    "console-api-key-rotate": "api_keys_rotate",
    "console-api-key-revoke": "api_keys_revoke",
    "console-apps": "oauth_apps_list",
    "console-app-register": "oauth_apps_create",
    "console-app-change": "oauth_apps_change",
    "console-app-secret": "oauth_apps_replace_secret",
    "console-app-revoke": "oauth_apps_revoke",
    "console-client-key-add": "client_keys_register",
    "console-client-key-revoke": "client_keys_revoke",
    # Memory
    "console-memories": "memories_list",
    "console-memory-customer": "memories_of_customer",
    "console-memory-bundle": "memories_export",
    "console-memory-bundle-export": "memories_export",
    "console-memory-bundle-import": "memories_import",
    "console-memory": "memories_get",
    "console-memory-correct": "memories_change",
    "console-memory-pin": "memories_change",
    "console-memory-delete": "memories_delete",
    "console-memory-confirm": "memories_change",
    "console-memory-restore": "memories_change",
    # Queue
    "console-queues": "queues_get dead_letters_list",
    "console-queue-retry": "dead_letters_retry",
    "console-queue-drop": "dead_letters_drop",
    # Releases
    "console-releases": "releases_list",
    "console-release-publish": "releases_publish",
    "console-release-simulate": "simulations_start",
    "console-release-rule": "releases_rule",
    "console-release": "releases_read releases_diff",
    "console-release-share": "releases_share",
    "console-release-roll-back": "releases_roll_back",
    # Review
    "console-review": "cards_list",
    "console-card": "cards_get",
    "console-decide": "cards_decide",
    "console-edit": "cards_get",
    "console-ask-anew": "cards_edit",
    "console-card-question": "cards_get",
    "console-card-ask": "cards_ask",
    "console-assign": "cards_assign",
    "console-take-back": "cards_take_back",
    "console-withdraw": "session_requests_withdraw",
    # Company, retention and limits
    "console-retention": "retention_get retention_edit",
    "console-company-settings": "company_get company_edit",
    "console-visitor-limits": "visitor_limits_get visitor_limits_edit",
    "console-card-timings": "card_timings_get card_timings_edit deployment_card_timings_get "
    "deployment_card_timings_edit",
    # Simulations
    "console-simulations": "simulation_suites_list simulations_list",
    "console-simulation-make": "simulation_suites_create",
    "console-simulation-visitor": "simulation_suites_create simulation_scenarios_save",
    "console-simulation-start": "simulations_start",
    "console-simulation": "simulations_get",
    "console-simulation-resume": "simulations_resume",
    "console-simulation-stop": "simulations_stop",
    # Safety
    "console-safety": "safety_holds_list",
    "console-safety-key": "api_keys_create",
    "console-safety-try": "safety_policy_backtest",
    # Skills
    "console-skills": "skills_list",
    "console-skill-add": "skills_import",
    "console-skill-package": "skill_packages_list",
    "console-skill-package-refuse": "skill_packages_refuse",
    "console-publishers": "skill_publishers_list",
    "console-publisher-remove": "skill_publishers_remove",
    "console-skill-export": "skills_export",
    "console-draft-new": "skill_drafts_begin",
    "console-draft": "skill_drafts_get",
    "console-draft-revise": "skill_drafts_revise",
    "console-draft-try": "skill_drafts_try",
    "console-draft-propose": "skill_drafts_submit",
    "console-draft-delete": "skill_drafts_delete",
    "console-skill": "skills_get",
    "console-skill-disable": "skills_disable",
    "console-skill-roll-back": "skills_roll_back",
    "console-skill-purge": "skills_purge",
    "console-skill-compare": "skills_diff",
    "console-skill-shipped": "bundled_skills_install",
    "console-draft-rewrite": "skill_drafts_revise",
    # Spending
    "console-spending": "spending_get",
    "console-limit-remove": "budgets_delete",
    "console-limit-save": "budgets_set",
    "console-prices": "model_prices_list model_prices_set",
    "console-price-remove": "model_prices_delete",
    "console-spending-policy": "spending_policy_get spending_policy_edit",
    "console-spending-resume": "spending_resume",
    # Studio
    "console-studios": "deployments_list",
    "console-studio-new": "deployments_create",
    "console-studio": "deployments_get deployments_change persona_read persona_preset persona_tune",
    "console-studio-turn": "deployments_change",
    "console-studio-compare": "styles_compare",
    "console-studio-key": "provider_keys_set",
    "console-studio-key-drop": "provider_keys_remove",
    "console-studio-picture": "deployment_logo_set deployment_avatar_set",
    "console-studio-picture-drop": "deployment_logo_remove deployment_avatar_remove",
    "console-studio-messages": "proactive_messages_list",
    "console-studio-message-new": "proactive_messages_create",
    "console-studio-message": "proactive_messages_get proactive_messages_edit",
    "console-studio-message-delete": "proactive_messages_delete",
    "console-studio-preference-off": "preferences_dismiss",
    "console-install": "deployments_install",
    # Tool servers
    "console-tool-servers": "mcp_servers_list",
    "console-tool-server-new": "mcp_servers_register",
    "console-tool-server": "mcp_server",
    "console-tool-server-refresh": "mcp_server_look",
    "console-tool-server-switch": "mcp_server_change",
    "console-tool-server-remove": "mcp_server_remove",
    "console-tool-accept": "mcp_tool_accept",
    "console-tool-suspend": "mcp_tool_suspend",
    "console-tool-program-new": "mcp_servers_register",
    "console-web-search": "web_search_set",
    "console-web-search-remove": "web_search_remove",
    # Work
    "console-work": "work_items_list",
    "console-work-item": "work_items_get",
    "console-work-cancel": "work_items_cancel",
    "console-work-resume": "work_items_resume",
}

# Why a program has no need of these addresses.
NO_API = {
    "Sums up for a person what the lists of cards, conversations, work, the log and spending say.": "console-away",
    "The same lists as files for a spreadsheet; a program reads them with the same filters.": "console-list-file",
    "Starting page, files of the browser and parts of a page that are drawn anew.": """
        console console-rail console-service-worker console-offline console-review-news
        console-card-news console-card-parts
        console-lookers console-draft-preview
    """,
    "Searches pages of the console; a program asks each list.": "console-palette console-settings",
    "A person logs in; a program has a key.": """
        console-login console-welcome console-logout console-second console-login-passkey-begin
        console-login-passkey-finish console-forgotten console-reset console-company console-company-go
        console-company-back console-invitation console-tenant
    """,
    "How members log in; a key that could change it could log in as any of them.": """
        console-member-logins console-second-required console-provider
    """,
    "A person decides whether apps that nobody registered may ask for access.": "console-app-self-registration",
    "Who may approve and what visitors reach: a key that could widen it could let its own requests pass.": """
        console-approval-policies console-approval-policy console-approval-policy-new console-approval-policy-delete
        console-access-levels console-access-level console-access-level-new console-access-level-delete
    """,
    "Programs are held by these rules: a person sets them, and lifts what they hold with a passkey.": """
        console-safety-policy console-safety-take-back console-safety-roll-back
        console-safety-step-up console-safety-allow console-safety-code console-safety-token
    """,
    "A person's own account, factors, logins and browsers.": """
        console-account console-account-name console-account-language console-account-password
        console-theme console-account-app console-account-app-confirm console-account-app-remove console-account-codes
        console-account-passkey-begin console-account-passkey-finish console-account-passkey-remove
        console-logins-end console-login-end console-passkeys console-passkey-begin console-passkey-finish
        console-passkey-remove console-passkey-rename console-key-replace console-step-up
        console-alerts console-alerts-choose console-alerts-notices console-push-add console-push-remove
        console-connected-apps console-connected-app-revoke console-account-channels console-account-channel-code
        console-account-channel-remove
    """,
    "A person compares the fingerprint of a publisher's key, and types its end.": """
        console-skill-package-trust console-publisher-pin
    """,
    "A person signs in at the service, in the browser that began.": "console-connection-sign-in",
    "A person words the message to their IT department, which goes out in their name.": "console-connection-it-request",
    "A person lets automations run in their own name.": "console-autonomy-opt",
    "Says in words when a schedule that is being typed would run.": "console-when",
    "First set-up of an installation, by its code, before there is a key; its steps are settings of their own.": """
        console-setup console-begin console-begin-model console-begin-knowledge console-begin-sites
        console-begin-ready
    """,
}

# What a program cannot do yet, by the page that can.
MISSING: dict[str, str] = {}

PATHS = yaml.safe_load((Path(__file__).parents[2] / "docs/openapi.yaml").read_text())["paths"]
ROUTE_NAMES = {re.sub(r"<(\w+:)?(\w+)>", r"{\2}", f"/{route}"): name for name, route in ROUTES.items()}
ADDRESSES = {
    operation["operationId"]: ROUTE_NAMES[path]
    for path, methods in PATHS.items()
    for operation in methods.values()
    if path in ROUTE_NAMES
}


def operations(name: str) -> list[str]:
    return OPERATIONS[name].split()


def test_every_address_of_the_console_stands_in_one_table() -> None:
    listed = Counter(OPERATIONS.keys())
    for table in (NO_API, MISSING):
        listed.update(name for names in table.values() for name in names.split())
    assert [name for name, times in listed.items() if times > 1] == []
    assert set(listed) == {name for name, route in ROUTES.items() if route.startswith("console/")}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_is_described(name: str) -> None:
    assert set(operations(name)) <= ADDRESSES.keys()


@pytest.mark.parametrize("page", ["activity", "insights", "members", "review", "studio", "work"])
def test_records_are_open_to_the_same_roles_as_their_page(page: str) -> None:
    urls = import_module(f"apps.console.pages.{page}.urls")
    names = [pattern.name for pattern in urls.urlpatterns if pattern.name in OPERATIONS]
    roles = {(name, operation): ALLOWED[ADDRESSES[operation]] for name in names for operation in operations(name)}
    assert roles == {(name, operation): ALLOWED[name] for name, operation in roles}
