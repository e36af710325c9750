"""Writes of the autonomy room (contract autonomy C, D). Everything here runs inside the caller's scope.

`session_start` is the only way to create a session, `session_end` the only way to end one.
"""

from apps.autonomy.services.consent import change_settings, opt_in, opt_out, put_settings
from apps.autonomy.services.occurrences import record_occurrence
from apps.autonomy.services.session_control import halt_session
from apps.autonomy.services.session_start import retry_session, run_now, spawn
from apps.autonomy.services.tasks import delete_task, release_task, save_task
from apps.autonomy.services.triggers import add_trigger, change_trigger, delete_trigger
from apps.autonomy.services.webhooks import delete_webhook, save_webhook

__all__ = [
    "add_trigger",
    "change_settings",
    "change_trigger",
    "delete_task",
    "delete_trigger",
    "delete_webhook",
    "halt_session",
    "opt_in",
    "opt_out",
    "put_settings",
    "record_occurrence",
    "release_task",
    "retry_session",
    "run_now",
    "save_task",
    "save_webhook",
    "spawn",
]
