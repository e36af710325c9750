"""URLs of automations in the REST API (contract interfaces, HTTP; spec 003)."""

from __future__ import annotations

from django.urls import path

from apps.autonomy.api import results, sessions, settings, tasks

_TASKS, _SESSIONS, _HOOKS = "api/v1/tasks", "api/v1/autonomous-sessions", "api/v1/webhooks"
_FINDINGS, _PROPOSALS, _PRECEDENTS = "api/v1/findings", "api/v1/proposals", "api/v1/precedents"

urlpatterns = [
    path(_TASKS, tasks.Tasks.as_view(), name="api-tasks"),
    path("api/v1/task-templates", tasks.TaskTemplates.as_view(), name="api-task-templates"),
    path(f"{_TASKS}/budget", sessions.TasksBudget.as_view(), name="api-tasks-budget"),
    path(f"{_TASKS}/settings", settings.Settings.as_view(), name="api-tasks-settings"),
    path(f"{_TASKS}/<uuid:task_id>", tasks.TaskDetail.as_view(), name="api-task"),
    path(f"{_TASKS}/<uuid:task_id>/runs", tasks.Runs.as_view(), name="api-task-runs"),
    path(f"{_TASKS}/<uuid:task_id>/run-now", tasks.RunNow.as_view(), name="api-task-run-now"),
    path(f"{_TASKS}/<uuid:task_id>/retry", tasks.Retry.as_view(), name="api-task-retry"),
    path(f"{_TASKS}/<uuid:task_id>/triggers", tasks.Triggers.as_view(), name="api-task-triggers"),
    path(f"{_TASKS}/<uuid:task_id>/triggers/<uuid:trigger_id>", tasks.TriggerDetail.as_view(), name="api-task-trigger"),
    path(_SESSIONS, sessions.Sessions.as_view(), name="api-autonomous-sessions"),
    path(f"{_SESSIONS}/<uuid:session_id>", sessions.SessionDetail.as_view(), name="api-autonomous-session"),
    path(f"{_SESSIONS}/<uuid:session_id>/receipt", sessions.Receipt.as_view(), name="api-autonomous-receipt"),
    path(f"{_SESSIONS}/<uuid:session_id>/halt", sessions.Halt.as_view(), name="api-autonomous-halt"),
    path(f"{_SESSIONS}/<uuid:session_id>/retry", sessions.Retry.as_view(), name="api-autonomous-retry"),
    path(f"{_SESSIONS}/<uuid:session_id>/artifacts", results.Artifacts.as_view(), name="api-artifacts"),
    path("api/v1/artifacts/<uuid:artifact_id>", results.ArtifactDetail.as_view(), name="api-artifact"),
    path("api/v1/artifacts/<uuid:artifact_id>/file", results.ArtifactFile.as_view(), name="api-artifact-file"),
    path(_FINDINGS, results.Findings.as_view(), name="api-findings"),
    path(f"{_FINDINGS}/<uuid:finding_id>", results.FindingDetail.as_view(), name="api-finding"),
    path(f"{_FINDINGS}/<uuid:finding_id>/resolve", results.FindingResolve.as_view(), name="api-finding-resolve"),
    path(_PROPOSALS, results.Proposals.as_view(), name="api-proposals"),
    path(f"{_PROPOSALS}/<uuid:proposal_id>", results.ProposalDetail.as_view(), name="api-proposal"),
    path(f"{_PROPOSALS}/<uuid:proposal_id>/dismiss", results.ProposalDismiss.as_view(), name="api-proposal-dismiss"),
    path(_PRECEDENTS, results.Precedents.as_view(), name="api-precedents"),
    path(
        f"{_PRECEDENTS}/<uuid:precedent_id>/dismiss", results.PrecedentDismiss.as_view(), name="api-precedent-dismiss"
    ),
    path("api/v1/notices", results.Notices.as_view(), name="api-notices"),
    path("api/v1/notices/<uuid:notice_id>/read", results.NoticeRead.as_view(), name="api-notice-read"),
    path(_HOOKS, settings.Webhooks.as_view(), name="api-webhooks"),
    path(f"{_HOOKS}/<uuid:webhook_id>", settings.WebhookDetail.as_view(), name="api-webhook"),
    path(f"{_HOOKS}/<uuid:webhook_id>/deliveries", settings.Deliveries.as_view(), name="api-webhook-deliveries"),
]
