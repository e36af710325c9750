"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.automations import gallery, settings, tasks, views

urlpatterns = [
    path("runs/", views.runs, name="console-runs"),
    path("runs/gallery/", gallery.gallery, name="console-gallery"),
    path("runs/gallery/<slug:key>/use/", gallery.use, name="console-gallery-use"),
    path("runs/findings/<uuid:finding_id>/resolve/", gallery.resolve, name="console-finding-resolve"),
    path("runs/artifacts/<uuid:artifact_id>/file/", views.artifact_file, name="console-artifact-file"),
    path("runs/settings/", settings.settings, name="console-autonomy"),
    path("runs/settings/mine/", settings.opt, name="console-autonomy-opt"),
    path("runs/settings/webhooks/", settings.add_webhook, name="console-webhook-add"),
    path("runs/settings/webhooks/<uuid:webhook_id>/delete/", settings.delete_webhook, name="console-webhook-delete"),
    path("runs/settings/webhooks/<uuid:webhook_id>/replay/", settings.replay_events, name="console-webhook-replay"),
    path("runs/settings/webhooks/<uuid:webhook_id>/rotate/", settings.rotate_secret, name="console-webhook-rotate"),
    path("runs/settings/webhooks/<uuid:webhook_id>/test/", settings.test_webhook, name="console-webhook-test"),
    path("runs/tasks/new/", tasks.new, name="console-task-new"),
    path("runs/tasks/when/", tasks.when_preview, name="console-when"),
    path("runs/tasks/<uuid:task_id>/", tasks.task, name="console-task"),
    path("runs/tasks/<uuid:task_id>/edit/", tasks.edit, name="console-task-edit"),
    path("runs/tasks/<uuid:task_id>/run/", tasks.run_now, name="console-task-run"),
    path("runs/tasks/<uuid:task_id>/release/", tasks.release, name="console-task-release"),
    path("runs/tasks/<uuid:task_id>/delete/", tasks.delete, name="console-task-delete"),
    path("runs/tasks/<uuid:task_id>/when/", tasks.add_when, name="console-when-add"),
    path("runs/when/<uuid:trigger_id>/turn/", tasks.turn_when, name="console-when-turn"),
    path("runs/when/<uuid:trigger_id>/delete/", tasks.delete_when, name="console-when-delete"),
    path("runs/<uuid:session_id>/", views.session, name="console-run"),
    path("runs/<uuid:session_id>/receipt/", views.receipt_file, name="console-run-receipt"),
    path("runs/<uuid:session_id>/halt/", views.halt, name="console-run-halt"),
    path("runs/<uuid:session_id>/retry/", views.retry, name="console-run-retry"),
    path("notices/", settings.notices_page, name="console-notices"),
    path("notices/read/", settings.read_all_notices, name="console-notices-read"),
    path("notices/<uuid:notice_id>/read/", settings.read_notice, name="console-notice-read"),
]
