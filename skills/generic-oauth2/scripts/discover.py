"""Which way of signing in do the settings allow?"""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from silas_skill.account import answer, settings


def main():
    known = settings()
    by_code = bool(known.get("device_url")) and not known.get("authorization_url")
    answer(
        auth_strategy="device_code" if by_code else "browser_redirect",
        provider=str(known.get("service", "")),
        identity_match=True,
        tenant_type="any",
        initial_permissions=["openid"],
        setup_requirements={
            "browser": not by_code,
            "secure_input": bool(known.get("confidential")),
            "app_registration": not known.get("client_id"),
        },
    )


main()
