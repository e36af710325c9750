"""Use a template of the gallery: create its task with its trigger, once for a member and a chatbot."""

from __future__ import annotations

from uuid import UUID

from apps.autonomy.gallery import BY_KEY
from apps.autonomy.models import Task
from apps.autonomy.services.consent import MAY_SET_UP, require_opt_in
from apps.autonomy.services.tasks import save_task
from apps.autonomy.services.triggers import add_trigger
from apps.tenants.models import Deployment, User
from apps.tenants.queries import require_role
from kernel.errors import NotFound


def use_template(key: str, *, user: User, deployment_id: UUID) -> Task:
    """Create the task, or return the one that this member has made of it already.

    Raises `NotFound` for an unknown template or a foreign chatbot, 403 forbidden_role and not_opted_in, 422 task_name
    when another task has the name.
    """
    require_role(user, MAY_SET_UP)
    require_opt_in(user)
    template = BY_KEY.get(key)
    # Locked, so that a button pressed twice makes one task.
    rows = Deployment.objects.select_for_update(of=("self",), no_key=True)
    deployment = rows.filter(pk=deployment_id).first()
    if template is None or deployment is None:
        raise NotFound()
    own = Task.objects.filter(owner_id=user.pk, deployment=deployment, playbook=template.key, deleted_at=None)
    existing: Task | None = own.order_by("created_at").first()
    if existing is not None:
        return existing
    name = str(template.title)
    if Task.objects.filter(name=name, deleted_at=None).exists():
        name = f"{name[:80]} ({deployment.title[:30]})"
    task = save_task(
        None,
        user=user,
        name=name,
        deployment_id=deployment.pk,
        playbook=template.key,
        route={"kind": "notify"},
        limits=template.limits,
    )
    kind, spec = template.trigger
    add_trigger(task.pk, user=user, kind=kind, spec=spec)
    return task
