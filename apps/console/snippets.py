"""How does the chat come onto a site? The snippet, what a strict site must allow, and where each site builder takes it.

Pure but for the loader's fingerprint, which is of the very bytes that are served.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.urls import reverse
from django.utils.html import escape

from apps.tenants.models import Deployment


@dataclass(frozen=True)
class Builder:
    """One way to make sites: `where` the code goes, `code` as it is pasted there."""

    slug: str
    name: str
    where: str
    code: str


# Where an inline chat stands, by the code that is pasted; a site gives it another height as it likes.
PLACE = "silas-chat"


def snippet(address: str, place: Deployment, *, integrity: str = "") -> str:
    """`address` is where this installation is reached, with a closing slash. An inline chat brings its place along."""
    src = f"{address.rstrip('/')}{reverse('widget-loader')}"
    pinned = f' integrity="{integrity}" crossorigin="anonymous"' if integrity else ""
    inline = f' data-inline="#{PLACE}"' if is_inline(place) else ""
    script = f'<script src="{escape(src)}" data-deployment="{escape(place.public_key)}"{inline}{pinned} async></script>'
    return f'<div id="{PLACE}" style="height: 600px"></div>\n{script}' if inline else script


def is_inline(place: Deployment) -> bool:
    return bool(place.theme.get("placement") == "inline")


def policy_lines(address: str) -> list[str]:
    """What a site with a Content-Security-Policy adds to its own lines."""
    parts = urlsplit(address)
    origin = f"{parts.scheme}://{parts.netloc}"
    return [f"script-src {origin}", f"frame-src {origin}"]


def builders(code: str, *, inline: bool = False) -> list[Builder]:
    """An inline chat has no builder that can put a script on every page only, or that frames what is pasted."""
    places = _INLINE if inline else _PLACES
    return [Builder(slug, name, where, _wrapped(slug, code)) for slug, name, where in places]


def _wrapped(slug: str, code: str) -> str:
    """A tag manager runs what it is given as a page's own script, and takes no attributes with it: the key is handed
    over in code."""
    if slug != "tag-manager":
        return code
    src = code.partition('src="')[2].partition('"')[0]
    key = code.partition('data-deployment="')[2].partition('"')[0]
    return (
        "<script>\n"
        '  var s = document.createElement("script");\n'
        f'  s.src = "{src}";\n'
        f'  s.dataset.deployment = "{key}";\n'
        "  s.async = true;\n"
        "  document.head.appendChild(s);\n"
        "</script>"
    )


_PLACES = (
    ("html", "Plain HTML", "Just before </body>, on every page that should have the chat."),
    (
        "wordpress",
        "WordPress",
        "A plugin that adds code to the footer (such as WPCode): Code Snippets, Header & Footer, then the footer box.",
    ),
    ("shopify", "Shopify", "Online Store, Themes, Edit code, theme.liquid: just before </body>."),
    ("squarespace", "Squarespace", "Settings, Advanced, Code Injection: the footer box."),
    ("wix", "Wix", "Settings, Custom Code, Add Custom Code: all pages, at the end of the body."),
    ("webflow", "Webflow", "Site settings, Custom code: the footer box. Publish the site afterwards."),
    ("tag-manager", "Google Tag Manager", "A new tag of the kind Custom HTML, fired on all pages."),
)
_INLINE = (
    ("html", "Plain HTML", "Where the chat should stand on the page."),
    ("wordpress", "WordPress", "In the page's editor, a block of the kind Custom HTML."),
    (
        "shopify",
        "Shopify",
        "Online Store, Customize: a section of the kind Custom Liquid, where the chat should stand.",
    ),
    ("squarespace", "Squarespace", "In the page's editor, a block of the kind Code."),
    ("webflow", "Webflow", "In the designer, an element of the kind Code Embed. Publish the site afterwards."),
)
