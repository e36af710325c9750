"""Serve the safety loop by MCP on stdin and stdout, for agents that start their MCP servers themselves.

`SILAS_SAFETY_KEY` is the API key of the agent; everything but the protocol goes to stderr.
"""

from __future__ import annotations

import asyncio

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from mcp.server.stdio import stdio_server

from apps.safety.mcp_server import create_server, surface_from_environment
from apps.tenants.queries import api_key
from kernel import live


class Command(BaseCommand):
    help = "Serve the execution safety loop by MCP on stdin and stdout."
    requires_system_checks: list[str] = []  # noqa: RUF012 (Django's own shape); stdout belongs to the protocol

    def handle(self, *args: object, **options: object) -> None:
        key = settings.SAFETY_KEY
        if api_key(key) is None:
            raise CommandError("E_SAFETY_KEY: SILAS_SAFETY_KEY is no API key of this installation")
        mode, prefix = surface_from_environment()
        asyncio.run(_serve(key, mode, prefix))


async def _serve(key: str, mode: str, prefix: str) -> None:
    live.serve_from(asyncio.get_running_loop())
    server = create_server(mode, prefix, key)
    async with stdio_server() as (reads, writes):
        await server.run(reads, writes, server.create_initialization_options())
