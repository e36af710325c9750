"""A password is entered in a secure field."""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from silas_skill.account import answer, settings

answer(
    auth_strategy="secure_input",
    provider=str(settings().get("service", "")),
    identity_match=True,
    tenant_type="any",
    initial_permissions=["calendar.read"],
    setup_requirements={"browser": False, "secure_input": True, "app_registration": False},
)
