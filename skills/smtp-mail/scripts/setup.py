"""Ask for the password in a secure field, and sign in with it."""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from mailing import look

from silas_skill.account import Failure, run_setup, secrets, settings, show_step


def talk(start):
    secrets()
    request = {
        "name": "password",
        "label": "Password of the mailbox",
        "input_hint": "or an app password",
        "guidance": {"instructions": "Use an app password if the mailbox asks for a second factor."},
    }
    if show_step("password", "secure_input", wait=True, request=request).get("success") is False:
        raise Failure("consent_denied", "The password was not given.")
    look(secrets().get("password", ""))
    wanted = [*start.get("initial_permissions", []), *start.get("incremental_scopes", [])]
    return {"permissions_granted": wanted, "identity": settings()["from_address"], "summary": "The server let us in."}


run_setup(talk)
