"""Tables of outside tools: servers, their tools with the terms a person accepted, pinned sets, and the web search.

A tool is used only while it is accepted, and only as it was described then: `digest` is of the description that a
person accepted, `seen_digest` of what its server says now. A set is written once and never changed.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from apps.approvals.enums import Risk
from apps.toolservers.enums import SearchProvider, ToolState, Transport
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class ToolServer(TenantModel):
    """An outside MCP server.

    `secret` is its token, sealed for this row. One in the sandbox is a script of the approved skill `program`
    (`name@digest`): `argv` is its path and arguments, `egress` the places it may reach. A server that is not `enabled`
    is never asked, and its tools are in no run.
    """

    name = models.CharField(max_length=24)
    transport = models.CharField(max_length=8, choices=Transport.choices)
    url = models.CharField(max_length=500, blank=True)
    program = models.CharField(max_length=100, blank=True)
    argv: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    egress: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    secret = models.BinaryField(blank=True, default=b"")
    enabled = models.BooleanField(default=True)
    removed = models.BooleanField(default=False)
    listed_at = models.DateTimeField(null=True, blank=True)
    failure = models.CharField(max_length=60, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "name"], condition=Q(removed=False), name="tool_server_once"),
            models.CheckConstraint(condition=Q(removed=False) | Q(enabled=False, secret=b""), name="tool_server_gone"),
            models.CheckConstraint(
                condition=(Q(transport=Transport.HTTP) & ~Q(url="") & Q(program=""))
                | (Q(transport=Transport.STDIO) & Q(url="") & ~Q(program="")),
                name="tool_server_has_its_address",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class OutsideTool(TenantModel):
    """One tool that a server lists. What the server says (`name` to `annotations`) is untrusted text; the terms below
    are a person's."""

    server = models.ForeignKey(ToolServer, on_delete=models.PROTECT, related_name="tools")
    alias = models.CharField(max_length=60)
    name = models.CharField(max_length=128)
    # The description as accepted; before that, as first seen.
    said = models.JSONField(default=dict)
    digest = models.CharField(max_length=64, blank=True)
    # The description as the server gives it now; empty when it no longer lists the tool.
    seen = models.JSONField(default=dict, blank=True)
    seen_digest = models.CharField(max_length=64, blank=True)
    problem = models.CharField(max_length=120, blank=True)
    state = models.CharField(max_length=10, choices=ToolState.choices, default=ToolState.NEW)
    acting = models.BooleanField(default=True)
    risk = models.CharField(max_length=16, choices=Risk.choices, default=Risk.HIGH)
    level = models.CharField(max_length=60, blank=True)
    price = models.DecimalField(max_digits=18, decimal_places=9, default=0)
    timeout = models.PositiveSmallIntegerField(default=30)
    proof = models.JSONField(default=dict, blank=True)
    accepted_by = models.UUIDField(null=True, blank=True)
    accepted_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["alias"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "alias"], name="outside_tool_alias_once"),
            models.UniqueConstraint(fields=["server", "name"], name="outside_tool_name_once"),
            models.CheckConstraint(condition=Q(price__gte=0), name="outside_tool_price"),
            # A tool in use is described exactly as a person accepted it.
            models.CheckConstraint(
                condition=~Q(state=ToolState.ACCEPTED)
                | (Q(digest=F("seen_digest")) & ~Q(digest="") & Q(problem="") & Q(accepted_at__isnull=False)),
                name="outside_tool_as_accepted",
            ),
        ]

    def __str__(self) -> str:
        return self.alias


class ToolSet(TenantModel):
    """The tools of a server that were in use together, `{alias: digest}`: what a goal or an approved plan refers to."""

    server = models.ForeignKey(ToolServer, on_delete=models.PROTECT, related_name="sets")
    digest = models.CharField(max_length=64)
    tools = models.JSONField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["server", "digest"], name="tool_set_once")]

    def __str__(self) -> str:
        return self.digest[:16]


class WebSearch(TenantModel):
    """The provider with which a tenant searches the web; without a row there is no such tool. `domains`: where results
    may come from, empty for anywhere. `price` of one search, in US dollars."""

    provider = models.CharField(max_length=12, choices=SearchProvider.choices)
    base_url = models.CharField(max_length=500)
    key = models.BinaryField(blank=True, default=b"")
    domains: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    most_results = models.PositiveSmallIntegerField(default=5)
    price = models.DecimalField(max_digits=18, decimal_places=9, default=0)
    level = models.CharField(max_length=60, blank=True, default="public")
    failure = models.CharField(max_length=60, blank=True)
    changed_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        verbose_name = _("web search")
        verbose_name_plural = _("web searches")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant"], name="web_search_once"),
            models.CheckConstraint(condition=Q(price__gte=0), name="web_search_price"),
            models.CheckConstraint(condition=Q(most_results__gte=1, most_results__lte=10), name="web_search_results"),
        ]

    def __str__(self) -> str:
        return self.provider
