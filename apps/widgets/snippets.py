"""The installation code of a chatbot, the Content-Security-Policy it needs, and site builder instructions. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html import unescape
from urllib.parse import urlsplit

from django.urls import reverse
from django.utils.html import escape
from django.utils.translation import gettext_lazy

from apps.tenants.models import Deployment


@dataclass(frozen=True)
class Builder:
    """A site builder: `where` the code goes, and the `code` to paste there."""

    slug: str
    name: str
    where: str
    code: str


# The id of the element that holds an inline chat; a website can change its height.
PLACE = "silas-chat"
DEFAULT_ACCENT = "#2c49d4"


def snippet(address: str, place: Deployment, *, integrity: str = "") -> str:
    """Return the code for the installation at `address`; an inline chat includes its element."""
    src = f"{address.rstrip('/')}{reverse('widget-loader')}"
    pinned = f' integrity="{integrity}" crossorigin="anonymous"' if integrity else ""
    inline = f' data-inline="#{PLACE}"' if is_inline(place) else ""
    look = "" if inline else "".join(f' data-{name}="{escape(value)}"' for name, value in first_look(place).items())
    key = escape(place.public_key)
    script = f'<script src="{escape(src)}" data-deployment="{key}"{look}{inline}{pinned} async></script>'
    return f'<div id="{PLACE}" style="height: 600px"></div>\n{script}' if inline else script


def first_look(place: Deployment) -> dict[str, str]:
    """Return what the loader needs to show the button before the frame has loaded, which corrects what is outdated."""
    look = {"accent": DEFAULT_ACCENT} | {name: str(place.theme.get(name) or "") for name in ("position", "launcher")}
    if accent := place.theme.get("accent"):
        look["accent"] = str(accent)
    return {name: value for name, value in look.items() if value}


def is_inline(place: Deployment) -> bool:
    return bool(place.theme.get("placement") == "inline")


def policy_lines(address: str) -> list[str]:
    """Return what a website's Content-Security-Policy needs."""
    parts = urlsplit(address)
    origin = f"{parts.scheme}://{parts.netloc}"
    return [f"script-src {origin}", f"frame-src {origin}"]


def builders(code: str, *, inline: bool = False) -> list[Builder]:
    """Return the site builders; an inline chat leaves out those that can't place it inside a page."""
    places = _INLINE if inline else _PLACES
    return [Builder(slug, str(name), str(where), _wrapped(slug, code)) for slug, name, where in places]


def _wrapped(slug: str, code: str) -> str:
    """Return the code for a builder. A tag manager drops attributes, so they are set in code there."""
    if slug != "tag-manager":
        return code
    src = code.partition('src="')[2].partition('"')[0]
    data = re.findall(r' data-([a-z]+)="([^"]*)"', code)
    return (
        "<script>\n"
        '  var s = document.createElement("script");\n'
        f'  s.src = "{src}";\n'
        + "".join(f"  s.dataset.{name} = {_quoted(unescape(value))};\n" for name, value in data)
        + "  s.async = true;\n"
        "  document.head.appendChild(s);\n"
        "</script>"
    )


def _quoted(text: str) -> str:
    """As a string of JavaScript inside a script element."""
    return json.dumps(text).replace("<", "\\u003c")


_PLACES = (
    ("html", gettext_lazy("Plain HTML"), gettext_lazy("Just before </body>, on every page that should show the chat.")),
    (
        "wordpress",
        "WordPress",
        gettext_lazy(
            "A plugin that adds code to the footer (such as WPCode): Code Snippets, Header & Footer, then the footer "
            "box."
        ),
    ),
    ("shopify", "Shopify", gettext_lazy("Online Store, Themes, Edit code, theme.liquid: just before </body>.")),
    ("squarespace", "Squarespace", gettext_lazy("Settings, Advanced, Code Injection: the footer box.")),
    ("wix", "Wix", gettext_lazy("Settings, Custom Code, Add Custom Code: all pages, at the end of the body.")),
    ("webflow", "Webflow", gettext_lazy("Site settings, Custom code: the footer box. Publish the site afterwards.")),
    ("tag-manager", "Google Tag Manager", gettext_lazy("A new tag of type Custom HTML, fired on all pages.")),
)
_INLINE = (
    ("html", gettext_lazy("Plain HTML"), gettext_lazy("Where the chat should appear on the page.")),
    ("wordpress", "WordPress", gettext_lazy("In the page's editor, a Custom HTML block.")),
    (
        "shopify",
        "Shopify",
        gettext_lazy("Online Store, Customize: a Custom Liquid section, where the chat should appear."),
    ),
    ("squarespace", "Squarespace", gettext_lazy("In the page's editor, a Code block.")),
    ("webflow", "Webflow", gettext_lazy("In the designer, a Code Embed element. Publish the site afterwards.")),
)
