"""Models: tenants, users and deployments (`directory`), login and invitations (`accounts`), apps of third parties
(`oauth`), console visits (`visits`), retention (`retention`), API requests with an idempotency key (`idempotency`),
sealed policy (`policy_seals`) and data keys (`vault`)."""

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
    DeploymentPicture,
    FirstRun,
    IdentityKey,
    Membership,
    MessageKey,
    Sighting,
    Tenant,
    User,
    VisitorLimits,
)
from apps.tenants.models.idempotency import IdempotentRequest
from apps.tenants.models.oauth import OAuthApp, OAuthGrant, OAuthToken
from apps.tenants.models.policy_seals import PolicySeal
from apps.tenants.models.retention import Retention
from apps.tenants.models.vault import DataKey
from apps.tenants.models.visits import Visit

__all__ = [
    "ApiKey",
    "DataKey",
    "Deployment",
    "DeploymentPicture",
    "FirstRun",
    "IdempotentRequest",
    "IdentityKey",
    "Invitation",
    "Letter",
    "Login",
    "LoginPasskey",
    "LoginProvider",
    "Membership",
    "MessageKey",
    "OAuthApp",
    "OAuthGrant",
    "OAuthToken",
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
