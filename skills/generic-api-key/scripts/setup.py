"""Ask for the key in a secure field, and try it."""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from calling import look

from silas_skill.account import Failure, run_setup, secrets, settings, show_step


def talk(start):
    secrets()
    guidance = {"instructions": "Make a key at the service, with no more rights than it needs, and paste it here."}
    if settings().get("help_url"):
        guidance["help_url"] = settings()["help_url"]
    request = {"name": "api_key", "label": "API key", "input_hint": "the whole key", "guidance": guidance}
    if show_step("key", "secure_input", wait=True, request=request).get("success") is False:
        raise Failure("consent_denied", "The key was not given.")
    look(secrets().get("api_key", ""))
    wanted = [*start.get("initial_permissions", []), *start.get("incremental_scopes", [])]
    return {"permissions_granted": wanted, "provider": settings().get("service", ""), "summary": "The key works."}


run_setup(talk)
