"""Enumerations of tool servers and web search. Values are stored for ever; new ones are added."""

from django.db.models import TextChoices


class Transport(TextChoices):
    """How an outside MCP server is reached."""

    HTTP = "http", "Over the network"
    STDIO = "stdio", "A program in the sandbox"


class ToolState(TextChoices):
    """new → accepted ⇄ suspended. A tool that its server no longer lists, or describes differently, is suspended at
    once; only a person accepts."""

    NEW = "new", "Not reviewed"
    ACCEPTED = "accepted", "In use"
    SUSPENDED = "suspended", "Suspended until reviewed"


class SearchProvider(TextChoices):
    BRAVE = "brave", "Brave Search"
    TAVILY = "tavily", "Tavily"
    SEARXNG = "searxng", "SearXNG (your own)"
