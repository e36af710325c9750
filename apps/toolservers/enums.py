"""Enumerations of tool servers and web search. Values are stored for ever; new ones are added."""

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class Transport(TextChoices):
    """How an outside MCP server is reached."""

    HTTP = "http", _("Over the network")
    STDIO = "stdio", _("A program in the sandbox")


class ToolState(TextChoices):
    """new → accepted ⇄ suspended. A tool that its server no longer lists, or describes differently, is suspended at
    once; only a person accepts."""

    NEW = "new", _("Not reviewed")
    ACCEPTED = "accepted", _("In use")
    SUSPENDED = "suspended", _("Suspended until reviewed")


class SearchProvider(TextChoices):
    BRAVE = "brave", _("Brave Search")
    TAVILY = "tavily", _("Tavily")
    SEARXNG = "searxng", _("SearXNG (your own)")
