"""Create a chatbot, with the settings of another one if wanted."""

from __future__ import annotations

from apps.tenants.first_run import new_public_key
from apps.tenants.models import Deployment
from apps.tenants.pictures import copy_pictures
from apps.tenants.provider_keys import copy_provider_keys
from apps.tenants.services import create_deployment
from apps.visitors import offers, proactive_messages
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

MOST_DEPLOYMENTS = 50
_COPIED = (
    "greeting",
    "suggestions",
    "theme",
    "languages",
    "persona",
    "model_names",
    "opening_hours",
    "timezone",
    "after_hours",
)


def create_chatbot(title: str, *, like: Deployment | None, actor: str) -> Deployment:
    """Create a deployment of the scope's tenant. `like`: whose settings, provider keys, pictures and
    visitor features it has.

    Raises `SilasError("deployments_full")`.
    """
    if Deployment.objects.count() >= MOST_DEPLOYMENTS:
        message = gettext("A company can have up to %(number)s chatbots.") % {"number": MOST_DEPLOYMENTS}
        raise SilasError(ErrorCode.DEPLOYMENTS_FULL, message)
    key = new_public_key(title)
    fields = {name: getattr(like, name) for name in _COPIED} if like else {}
    deployment = create_deployment(key, actor=actor, title=title, public_key=key, **fields)
    if like:
        copy_provider_keys(like, deployment, actor=actor)
        copy_pictures(like, deployment, actor=actor)
        offers.copy(like, deployment, actor=actor)
        proactive_messages.copy(like, deployment, actor=actor)
    return deployment
