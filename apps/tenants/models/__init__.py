"""Who exists and belongs (`directory`), how people come in (`accounts`) and when they were here (`visits`), and how
long what was said is kept (`retention`), and under which key what is secret is sealed (`vault`)."""

from apps.tenants.models.accounts import (
    Invitation,
    Letter,
    Login,
    LoginPasskey,
    LoginProvider,
    ProviderAccount,
    RecoveryCode,
    Totp,
)
from apps.tenants.models.directory import (
    ApiKey,
    Deployment,
    FirstRun,
    IdentityKey,
    Membership,
    MessageKey,
    Sighting,
    Tenant,
    User,
    VisitorLimits,
)
from apps.tenants.models.policy_seals import PolicySeal
from apps.tenants.models.retention import Retention
from apps.tenants.models.vault import DataKey
from apps.tenants.models.visits import Visit

__all__ = [
    "ApiKey",
    "DataKey",
    "Deployment",
    "FirstRun",
    "IdentityKey",
    "Invitation",
    "Letter",
    "Login",
    "LoginPasskey",
    "LoginProvider",
    "Membership",
    "MessageKey",
    "PolicySeal",
    "ProviderAccount",
    "RecoveryCode",
    "Retention",
    "Sighting",
    "Tenant",
    "Totp",
    "User",
    "Visit",
    "VisitorLimits",
]
