"""Which policy has a tenant set? One row a gate; an administrator edits it, a turn reads all active ones at once."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from pydantic import ValidationError as SpecError

from apps.gates.enums import GateProvider, GateTrigger, GateType
from apps.gates.schemas import GateSpec
from kernel.tenancy import TenantModel

# Django keeps `Model.check` for itself.
COLUMNS = {name: "validator" if name == "check" else name for name in GateSpec.model_fields}


class Gate(TenantModel):
    """A gate of one deployment, or of all of them when `deployment` is empty (those run first)."""

    deployment = models.ForeignKey(
        "tenants.Deployment", on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    name = models.SlugField(max_length=80)
    enabled = models.BooleanField(default=True)
    order = models.PositiveSmallIntegerField(default=100)
    on = models.CharField("when", max_length=24, choices=GateTrigger.choices)
    after_step = models.PositiveSmallIntegerField(null=True, blank=True)
    provider = models.CharField(max_length=16, choices=GateProvider.choices, default=GateProvider.PREDICATE)
    type = models.CharField(max_length=16, choices=GateType.choices, default=GateType.STRING_MATCH)
    validator = models.CharField("check", max_length=120, null=True, blank=True)
    config = models.JSONField(default=dict, blank=True)
    extract = models.CharField(max_length=80, null=True, blank=True)
    auto_approve = models.JSONField(null=True, blank=True)
    require_approval = models.JSONField(null=True, blank=True)
    block = models.JSONField(null=True, blank=True)
    allowed_values = models.JSONField(null=True, blank=True)
    approval_values = models.JSONField(null=True, blank=True)
    on_block = models.CharField(max_length=80, default="report")
    check_command = models.CharField(max_length=500, null=True, blank=True)
    check_expect = models.JSONField(null=True, blank=True)
    promote_to_policy = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())

    deployment_id: UUID | None

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["order", "name"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "deployment", "name"], name="gate_name_once", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=Q(on=GateTrigger.AFTER_STEP, after_step__isnull=False)
                | (~Q(on=GateTrigger.AFTER_STEP) & Q(after_step__isnull=True)),
                name="gate_step_with_its_trigger",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def to_spec(self) -> GateSpec:
        """Raises pydantic's ValidationError for a row that is no gate."""
        return GateSpec(**{name: self._spec_value(name) for name in COLUMNS})

    def _spec_value(self, name: str) -> Any:
        value = getattr(self, COLUMNS[name])
        return None if value == "" and GateSpec.model_fields[name].default is None else value

    def clean(self) -> None:
        """The form's side of the rule that lives in GateSpec: say now what would fail at the next message."""
        try:
            self.to_spec()
        except SpecError as error:
            raise ValidationError([str(problem["msg"]) for problem in error.errors()]) from error
