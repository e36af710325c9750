"""The snippets for WordPress, Shopify and React embed our loader and nothing else, and put no secret into a page.

What they do in a page is tried by `npm test` in clients/react.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.urls import reverse

from apps.tenants.models import Deployment
from apps.widgets.snippets import builders, snippet

CLIENTS = Path(__file__).parents[2] / "clients"
WORDPRESS = CLIENTS / "wordpress" / "silas-chat"
EMBEDS = (
    WORDPRESS / "silas-chat.php",
    CLIENTS / "shopify" / "snippets" / "silas-chat.liquid",
    CLIENTS / "react" / "src" / "index.js",
)


def test_wordpress_and_shopify_have_the_same_identity_script() -> None:
    copies = [WORDPRESS / "silas-identity.js", CLIENTS / "shopify" / "assets" / "silas-identity.js"]
    assert copies[0].read_bytes() == copies[1].read_bytes()


@pytest.mark.parametrize("path", EMBEDS, ids=lambda path: path.name)
def test_snippet_embeds_the_loader_and_no_other_address(path: Path) -> None:
    text = path.read_text()
    assert reverse("widget-loader") in text
    addresses = set(re.findall(r"https?://[\w.-]+", text))
    assert addresses <= {"https://chat.example.com"}


def test_plugin_shows_its_secret_nowhere() -> None:
    uses = [line for line in (WORDPRESS / "silas-chat.php").read_text().splitlines() if "['secret']" in line]
    assert not [line for line in uses if "echo" in line or "printf" in line]
    assert "'password', '' )" in (WORDPRESS / "silas-chat.php").read_text()


def test_code_of_an_installation_names_the_look_of_the_button() -> None:
    place = Deployment(public_key="key", theme={"launcher": 'Ask "us" </script>', "position": "left"})
    code = snippet("https://chat.example.com/", place)
    assert code == (
        '<script src="https://chat.example.com/widget/v1/loader.js" data-deployment="key" data-accent="#2c49d4"'
        ' data-position="left" data-launcher="Ask &quot;us&quot; &lt;/script&gt;" async></script>'
    )


def test_code_for_a_tag_manager_sets_the_same_in_script() -> None:
    place = Deployment(public_key="key", theme={"launcher": 'Ask "us" </script>', "accent": "#b3123d"})
    code = next(one.code for one in builders(snippet("https://a.example", place)) if one.slug == "tag-manager")
    assert '  s.dataset.deployment = "key";\n  s.dataset.accent = "#b3123d";\n' in code
    assert '  s.dataset.launcher = "Ask \\"us\\" \\u003c/script>";\n' in code


def test_inline_chat_has_no_button_to_describe() -> None:
    assert "data-accent" not in snippet("https://a.example", Deployment(public_key="k", theme={"placement": "inline"}))
