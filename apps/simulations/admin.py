"""Simulations in Django admin, to view. They are started in the console and by `manage.py simulate`."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin

from apps.audit.admin_base import ReadOnlyAdmin
from apps.simulations.models import Scenario, SimulationCopy, SimulationResult, SimulationRun, SimulationSuite


@admin.register(SimulationSuite)
class SimulationSuiteAdmin(ReadOnlyAdmin):
    list_display = ("name", "deployment", "created_at")
    list_select_related: ClassVar = ["tenant", "deployment"]


@admin.register(Scenario)
class ScenarioAdmin(ReadOnlyAdmin):
    list_display = ("name", "suite", "origin", "created_at")
    list_select_related: ClassVar = ["tenant", "suite"]
    list_filter = ("origin",)


@admin.register(SimulationRun)
class SimulationRunAdmin(ReadOnlyAdmin):
    list_display = ("suite", "deployment", "status", "passed", "created_at")
    list_select_related: ClassVar = ["tenant", "suite", "deployment"]
    list_filter = ("status", "passed")


@admin.register(SimulationResult)
class SimulationResultAdmin(ReadOnlyAdmin):
    list_display = ("name", "outcome", "cost_usd", "finished_at")
    list_select_related: ClassVar = ["tenant"]
    list_filter = ("outcome",)


@admin.register(SimulationCopy)
class SimulationCopyAdmin(ReadOnlyAdmin):
    list_display = ("deployment", "copy_tenant_id", "refreshed_at")
    list_select_related: ClassVar = ["tenant", "deployment"]
