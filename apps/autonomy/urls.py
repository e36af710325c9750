"""URLs of automations in the REST API (contract interfaces, HTTP; spec 003)."""

from __future__ import annotations

from django.urls import path

from apps.autonomy.api import sessions, settings, tasks

_TASKS, _SESSIONS, _HOOKS = "api/v1/tasks", "api/v1/autonomous-sessions", "api/v1/webhooks"

urlpatterns = [
    path(_TASKS, tasks.Tasks.as_view(), name="api-tasks"),
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
    path(_HOOKS, settings.Webhooks.as_view(), name="api-webhooks"),
    path(f"{_HOOKS}/<uuid:webhook_id>", settings.WebhookDetail.as_view(), name="api-webhook"),
    path(f"{_HOOKS}/<uuid:webhook_id>/deliveries", settings.Deliveries.as_view(), name="api-webhook-deliveries"),
]
