"""Ask for the secret access key in a secure field, and try it."""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from listing import look

from silas_skill.account import Failure, run_setup, secrets, show_step


def talk(start):
    secrets()
    guidance = {"instructions": "Make an access key that may only list and read the bucket, and paste its secret here."}
    request = {"name": "secret_access_key", "label": "Secret access key", "guidance": guidance}
    if show_step("key", "secure_input", wait=True, request=request).get("success") is False:
        raise Failure("consent_denied", "The key was not given.")
    look(secrets().get("secret_access_key", ""))
    return {"permissions_granted": start.get("initial_permissions", []), "summary": "The bucket can be listed."}


run_setup(talk)
