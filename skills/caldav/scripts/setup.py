"""Ask for the password in a secure field, and open the calendar with it."""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from silas_skill.account import Failure, run_setup, secrets, settings, show_step
from silas_skill.caldav import Calendar


def talk(start):
    secrets()
    request = {
        "name": "password",
        "label": "Password of the calendar",
        "input_hint": "or an app password",
        "guidance": {"instructions": "Use an app password if the account asks for a second factor."},
    }
    if show_step("password", "secure_input", wait=True, request=request).get("success") is False:
        raise Failure("consent_denied", "The password was not given.")
    name, _ = Calendar(secrets().get("password", "")).open()
    wanted = [*start.get("initial_permissions", []), *start.get("incremental_scopes", [])]
    summary = f"The calendar {name} is open." if name else "The calendar is open."
    return {"permissions_granted": wanted, "identity": settings()["username"], "summary": summary[:200]}


run_setup(talk)
