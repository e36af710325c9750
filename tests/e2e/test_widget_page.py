"""The widget on a customer's page: which sites it opens on, what a strict page blocks, and window.Silas whole."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from apps.tenants.models import Deployment
from apps.widgets.snippets import policy_lines
from kernel.tenancy import in_scope
from tests.e2e.conftest import ROOT, OpenPage, Site
from tests.e2e.peer import Peer
from tests.e2e.widget import Widget, opened
from tests.factories.tenants import make_deployment

SEEN = """window.seen = [];
for (const name of "ready error opened closed message unread handoff".split(" "))
  addEventListener(`silas:${name}`, ({detail}) => seen.push([name, detail]));"""


@pytest.fixture
def embedded(site: Site, web: str, tenant: Any) -> Site:
    """The customer's site, allowed and with the snippet of the install page."""
    made = make_deployment(tenant, allowed_origins=[site.origin])
    site.body = (
        f"<!doctype html><html lang=en><title>Site</title><script>{SEEN}</script>"
        f'<script src="{web}/widget/v1/loader.js" data-deployment="{made.public_key}" async></script>'
    )
    return site


@pytest.fixture
def demo(web: str, deployment: Any) -> str:
    """The same page for tests of what the browser remembers: other sites' frames may remember nothing here."""
    return f"{web}/demo/{deployment.tenant.slug}/"


async def _events(page: Page, name: str) -> list[Any]:
    found: list[Any] = await page.evaluate("(wanted) => seen.filter(([n]) => n === wanted).map(([, d]) => d)", name)
    return found


# --- which sites ------------------------------------------------------------------------------------------------------


async def test_site_that_is_not_listed_gets_no_widget(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    stranger = embedded.origin.replace("localhost", "127.0.0.1")
    page = await open_page(stranger, peer=peer)
    await asyncio.sleep(1.5)
    await expect(Widget(page).bubble).to_be_hidden()
    open_page.errors.clear()


async def test_site_with_an_unknown_key_gets_no_widget(open_page: OpenPage, site: Site, web: str) -> None:
    site.body = f'<!doctype html><script src="{web}/widget/v1/loader.js" data-deployment="no-such-key" async></script>'
    page = await open_page(site.origin)
    await asyncio.sleep(1.5)
    await expect(Widget(page).bubble).to_be_hidden()
    open_page.errors.clear()


def with_look(site: Site) -> None:
    look = 'data-accent="#b3123d" data-position="left" data-launcher="Ask us"'
    site.body = site.body.replace(" async>", f" {look} async>")


async def test_button_is_there_before_the_frame_as_the_page_s_code_says(
    open_page: OpenPage, embedded: Site, peer: Peer
) -> None:
    with_look(embedded)
    page = await open_page("about:blank", peer=peer)
    held = asyncio.Event()

    async def hold(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await page.route(re.compile(r"/widget/v1/[^/]+/$"), hold)
    await page.goto(embedded.origin, wait_until="commit")
    bubble = Widget(page).bubble
    await expect(bubble).to_have_text("Ask us")
    await expect(bubble).to_have_css("background-color", "rgb(179, 18, 61)")
    await expect(bubble).to_have_class(re.compile(r"\bleft\b"))
    await bubble.click()
    held.set()
    await expect(Widget(page).panel).to_be_visible()


async def test_button_of_a_later_page_is_there_before_the_frame(
    open_page: OpenPage, embedded: Site, peer: Peer
) -> None:
    page = await open_page(embedded.origin, peer=peer)
    await expect(Widget(page).bubble).to_be_visible()
    await page.route(re.compile(r"/widget/v1/[^/]+/$"), lambda route: asyncio.sleep(30))
    await page.reload(wait_until="commit")
    await expect(Widget(page).bubble).to_be_visible()


async def test_button_goes_from_a_site_whose_frame_is_refused(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    with_look(embedded)
    stranger = embedded.origin.replace("localhost", "127.0.0.1")
    page = await open_page(stranger, peer=peer)
    await expect(Widget(page).bubble).to_be_hidden(timeout=6000)
    assert await page.evaluate("document.querySelector('[data-silas]') !== null")
    open_page.errors.clear()


async def test_listed_site_gets_the_widget(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    widget = await opened(await open_page(embedded.origin, peer=peer))
    await widget.say("Hello from another site")
    assert (await peer.hears(1))[0]["text"] == "Hello from another site"


async def test_page_is_not_shifted_by_loading_opening_or_an_answer(
    open_page: OpenPage, embedded: Site, peer: Peer
) -> None:
    observe = """window.shifts = [];
      new PerformanceObserver((list) => shifts.push(...list.getEntries().map((one) => one.value)))
        .observe({ type: "layout-shift", buffered: true });"""
    embedded.body += f"<script>{observe}</script><h1>Tools</h1><p>Spades and rakes.</p>"
    page = await open_page(embedded.origin, peer=peer)
    widget = await opened(page)
    await peer.hears(1, "auth")
    peer.say(text="We have spades. " * 80)
    await expect(widget.bot.last).to_contain_text("We have spades.")
    await widget.close()
    await expect(widget.panel).to_be_hidden()
    await page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert await page.evaluate("shifts") == []
    await page.evaluate("document.querySelector('h1').style.marginTop = '200px'")
    await page.wait_for_function("shifts.length > 0")


async def test_site_whose_policy_blocks_all_inline_code_and_style_gets_the_whole_widget(
    open_page: OpenPage, embedded: Site, web: str, peer: Peer
) -> None:
    strict = f"default-src 'none'; script-src {web}; frame-src {web}; require-trusted-types-for 'script'"
    embedded.headers["Content-Security-Policy"] = f"{strict}; trusted-types 'none'"
    embedded.body = embedded.body.replace(f"<script>{SEEN}</script>", "")
    widget = await opened(await open_page(embedded.origin, peer=peer))
    box = await widget.panel.bounding_box()
    assert box is not None
    assert box["width"] == 388


async def test_site_with_the_documented_policy_talks(open_page: OpenPage, embedded: Site, web: str, peer: Peer) -> None:
    """The policy of docs/widget.md, made of the lines that the install page and the API name."""
    policy = "; ".join(["default-src 'none'", *policy_lines(f"{web}/")])
    assert policy.replace(web, "https://HOST") in (ROOT / "docs/widget.md").read_text()
    embedded.headers["Content-Security-Policy"] = policy
    embedded.body = embedded.body.replace(f"<script>{SEEN}</script>", "")
    widget = await opened(await open_page(embedded.origin, peer=peer))
    await widget.say("Hello under a policy")
    assert (await peer.hears(1))[0]["text"] == "Hello under a policy"
    peer.say(text="Hello back.")
    await expect(widget.bot).to_have_text("Hello back.")


async def test_site_with_third_party_storage_blocked_still_talks_and_goes_on_over_its_pages(
    open_page: OpenPage, embedded: Site, peer: Peer
) -> None:
    page = await open_page("about:blank", peer=peer)
    await page.add_init_script(
        "if (self !== top) Object.defineProperty(self, 'localStorage', {get() { throw new DOMException('blocked'); }});"
    )
    await page.goto(embedded.origin)
    widget = await opened(page)
    await widget.say("Without storage")
    assert (await peer.hears(1))[0]["text"] == "Without storage"
    kept = await page.evaluate("Object.values(sessionStorage).join()")
    assert "resume" in kept
    assert "Without storage" not in kept
    before = peer.session_id
    await page.goto(f"{embedded.origin}/?next")
    await expect((await opened(page)).mine).to_have_text(["Without storage"])
    assert peer.session_id == before


async def test_forged_messages_move_neither_the_page_nor_the_frame(
    open_page: OpenPage, embedded: Site, web: str, peer: Peer
) -> None:
    """From the page to itself as if it were the frame, from the page to the frame as if by another window, and from a
    foreign frame to both."""
    page = await open_page(embedded.origin, peer=peer)
    widget = await opened(page)
    await peer.hears(1, "auth")
    await page.evaluate(
        """async () => {
        const inner = document.querySelector("[data-silas]").shadowRoot.querySelector("iframe").contentWindow;
        const foreign = document.createElement("iframe");
        document.body.append(foreign);
        for (const silas of ["close", "gone"]) postMessage({silas}, "*");
        postMessage({silas: "event", event: "consent", detail: {forged: true}}, "*");
        for (const silas of ["shutdown", "renew"]) {
            foreign.contentWindow.eval(`parent.frames[0].postMessage({silas: "${silas}"}, "*");
                parent.postMessage({silas: "close"}, "*")`);
        }
        inner.postMessage({silas: "locale", locale: "de"}, "*");
        await new Promise((done) => setTimeout(done, 0));
        }"""
    )
    # What the page itself says still counts, and comes after all that was forged.
    await expect(widget.field).to_have_attribute("placeholder", "Nachricht schreiben")
    await expect(widget.panel).to_be_visible()
    assert peer.connections == 1
    assert await page.evaluate("seen.filter(([name]) => name === 'consent' || name === 'closed').length") == 0


async def test_chat_in_the_page_itself_has_no_bubble_and_takes_no_focus(
    open_page: OpenPage, embedded: Site, peer: Peer
) -> None:
    embedded.body = embedded.body.replace("async", 'data-inline="#here" async')
    embedded.body += "<input id=mine autofocus><div id=here style='width: 340px; height: 500px'></div>"
    page = await open_page(embedded.origin, peer=peer)
    widget = Widget(page)
    await peer.hears(1, "auth")
    await expect(widget.field).to_be_visible()
    await expect(widget.bubble).to_be_hidden()
    await expect(widget.button("Close chat")).to_be_hidden()
    box = await widget.panel.bounding_box()
    assert box is not None
    assert box["width"] == 340
    assert box["height"] == 500
    await expect(page.locator("#mine")).to_be_focused()


# --- window.Silas -----------------------------------------------------------------------------------------------------


async def test_calls_made_before_the_script_are_done_after_it(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    early = "window.Silas = window.Silas || {q: []}; Silas.q.push(['on', 'opened', () => { early = 1; }], ['open']);"
    embedded.body = embedded.body.replace(SEEN, SEEN + early)
    page = await open_page(embedded.origin, peer=peer)
    await expect(Widget(page).field).to_be_visible()
    assert await page.evaluate("window.early") == 1


async def test_function_calls_the_same_before_and_after_the_script(
    open_page: OpenPage, embedded: Site, peer: Peer
) -> None:
    stub = "window.silas = window.silas || function () { (silas.q = silas.q || []).push(arguments); };"
    assert stub in (ROOT / "docs/widget.md").read_text()
    early = f"{stub} silas('on', 'opened', () => {{ window.early = 1; }}); silas('open');"
    embedded.body = embedded.body.replace(SEEN, SEEN + early)
    page = await open_page(embedded.origin, peer=peer)
    widget = Widget(page)
    await expect(widget.field).to_be_visible()
    assert await page.evaluate("window.early") == 1
    await page.evaluate("silas('no such name'); silas('setLocale', 'de'); silas('close')")
    await expect(widget.panel).to_be_hidden()
    await page.evaluate("silas('toggle')")
    await expect(widget.field).to_have_attribute("placeholder", "Nachricht schreiben")


async def test_boot_starts_a_widget_whose_snippet_names_no_key(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    key = embedded.body.partition('data-deployment="')[2].partition('"')[0]
    embedded.body = embedded.body.replace(f'data-deployment="{key}" async', "")
    page = await open_page(embedded.origin, peer=peer)
    await page.evaluate("(key) => Silas.boot({deployment: key, open: true})", key)
    await expect(Widget(page).field).to_be_visible()


async def test_open_close_and_toggle_tell_the_page(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    page = await open_page(embedded.origin, peer=peer)
    widget = Widget(page)
    await expect(widget.bubble).to_be_visible()
    for call in ("open", "close", "toggle"):
        await page.evaluate(f"Silas.{call}()")
    await expect(widget.panel).to_be_visible()
    assert [name for name, _ in await page.evaluate("seen") if name in ("opened", "closed")] == [
        "opened",
        "closed",
        "opened",
    ]


async def test_off_ends_what_on_began(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    page = await open_page(embedded.origin, peer=peer)
    await expect(Widget(page).bubble).to_be_visible()
    script = "{ let n = 0; const f = () => { n += 1; }; Silas.on('opened', f); Silas.open(); Silas.off('opened', f);"
    assert await page.evaluate(f"() => {script} Silas.close(); Silas.open(); return n; }}") == 1


async def test_ready_tells_the_session_and_later_listeners_too(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    page = await open_page(embedded.origin, peer=peer)
    await opened(page)
    await page.wait_for_function("seen.some(([name]) => name === 'ready')")
    assert await page.evaluate("new Promise((done) => Silas.on('ready', done))") == {"session_id": peer.session_id}


async def test_message_event_tells_the_page_that_something_was_said_but_not_what(
    open_page: OpenPage, embedded: Site, peer: Peer
) -> None:
    page = await open_page(embedded.origin, peer=peer)
    widget = await opened(page)
    await peer.hears(1, "auth")
    peer.say(text="Your claim 4711 is settled.")
    await expect(widget.bot).to_have_count(1)
    assert await _events(page, "message") == [{"seq": 1, "sender": "bot"}]


async def test_message_while_closed_counts_as_unread_until_opened(
    open_page: OpenPage, embedded: Site, peer: Peer
) -> None:
    page = await open_page(embedded.origin, peer=peer)
    widget = await opened(page)
    await peer.hears(1, "auth")
    await widget.close()
    peer.say(text="one")
    peer.say(text="two")
    await expect(page.locator("[data-silas] .count")).to_have_text("2")
    await widget.open()
    await expect(page.locator("[data-silas] .count")).to_be_hidden()


async def test_unread_after_a_reload_is_still_unread(open_page: OpenPage, demo: str, peer: Peer) -> None:
    page = await open_page(demo, peer=peer)
    widget = await opened(page)
    await peer.hears(1, "auth")
    peer.say(text="read")
    await peer.hears(1, "read")
    await widget.close()
    peer.note(text="not read")
    await page.reload()
    await expect(page.locator("[data-silas] .count")).to_have_text("1")


async def test_takeover_tells_the_page(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    page = await open_page(embedded.origin, peer=peer)
    await opened(page)
    await peer.hears(1, "auth")
    peer.say("owner", owner="human", name="Ana")
    await page.wait_for_function("seen.some(([name]) => name === 'handoff')")
    assert await _events(page, "handoff") == [{"owner": "human"}]


# By what the page says: the words of the field, the button to send, and the direction.
SPOKEN = {
    "de-AT": ("Nachricht schreiben", "Senden", "ltr"),
    "fr": ("Écrire un message", "Envoyer", "ltr"),
    "es-MX": ("Escriba un mensaje", "Enviar", "ltr"),
    "ar-EG": ("اكتب رسالة", "إرسال", "rtl"),
    "en-GB": ("Write a message", "Send", "ltr"),
}


async def test_every_language_is_spoken_whole_and_fits_a_narrow_screen(
    open_page: OpenPage, embedded: Site, peer: Peer
) -> None:
    """320 px wide, which is also what 200 % of a small window leaves."""
    embedded.body = embedded.body.replace("<title>", "<meta name=viewport content='width=device-width'><title>")
    embedded.body = embedded.body.replace("lang=en", "lang=it").replace("async", "data-language=fr async")
    peer.ready = {"access_level": "verified", "expires_at": (datetime.now(UTC) + timedelta(minutes=11)).isoformat()}
    page = await open_page(embedded.origin, peer=peer, viewport={"width": 320, "height": 300})
    widget = await opened(page)
    await expect(widget.field).to_have_attribute("placeholder", SPOKEN["fr"][0])
    wide = "() => Math.max(document.body.scrollWidth, document.querySelector('[data-log]').scrollWidth) - innerWidth"
    for locale, (write, send, direction) in SPOKEN.items():
        await page.evaluate("(locale) => Silas.setLocale(locale)", locale)
        await expect(widget.frame.locator("html")).to_have_attribute("lang", locale)
        await expect(widget.frame.locator("html")).to_have_attribute("dir", direction)
        await expect(widget.field).to_have_attribute("placeholder", write)
        await expect(widget.frame.locator(".send")).to_have_attribute("aria-label", send)
        await expect(widget.level).to_contain_text(re.compile(r"\S · \S"))
        assert await widget.frame.locator("body").evaluate(wide) <= 0


async def test_locale_that_is_no_locale_is_english(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    page = await open_page(embedded.origin, peer=peer)
    widget = await opened(page)
    await page.evaluate("Silas.setLocale('de-!!'); Silas.setLocale({}); Silas.setLocale('<b>')")
    await expect(widget.field).to_have_attribute("placeholder", "Write a message")


async def test_languages_of_the_deployment_bound_what_is_asked_for(
    open_page: OpenPage, embedded: Site, peer: Peer, tenant: Any
) -> None:
    await in_scope(tenant, lambda: Deployment.objects.update(languages=["fr", "ar"]))
    widget = await opened(await open_page(embedded.origin, peer=peer, locale="en-GB"))
    await expect(widget.field).to_have_attribute("placeholder", SPOKEN["fr"][0])
    await widget.page.evaluate("Silas.setLocale('ar')")
    await expect(widget.frame.locator("html")).to_have_attribute("dir", "rtl")
    await widget.page.evaluate("Silas.setLocale('es')")
    await expect(widget.field).to_have_attribute("placeholder", SPOKEN["fr"][0])


async def test_launcher_has_its_words_and_fits_a_narrow_screen(
    open_page: OpenPage, embedded: Site, peer: Peer, tenant: Any
) -> None:
    theme = {"launcher": "W" * 40, "position": "left"}
    await in_scope(tenant, lambda: Deployment.objects.update(theme=theme))
    page = await open_page(embedded.origin, peer=peer, viewport={"width": 320, "height": 500})
    bubble = page.get_by_role("button", name="W" * 40)
    box = await bubble.bounding_box()
    assert box
    assert box["x"] == 16
    assert box["height"] == 56
    assert box["x"] + box["width"] <= 320


async def test_theme_of_the_page_reaches_bubble_and_frame(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    page = await open_page(embedded.origin, peer=peer)
    widget = await opened(page)
    await page.evaluate("Silas.setTheme({accent: '#0f7b6c', mode: 'light', position: 'left'})")
    await expect(widget.panel).to_have_css("left", "24px")
    await expect(widget.bubble).to_have_css("background-color", "rgb(15, 123, 108)")
    await expect(widget.button("Send")).to_be_disabled()
    await widget.field.fill("x")
    await expect(widget.button("Send")).to_have_css("background-color", "rgb(15, 123, 108)")


async def test_mode_of_the_page_overrules_the_browsers(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    page = await open_page(embedded.origin, peer=peer, color_scheme="light")
    widget = await opened(page)
    await page.evaluate("Silas.setTheme({mode: 'dark'})")
    await expect(widget.frame.locator("html")).to_have_attribute("data-mode", "dark")


async def test_theme_that_is_no_colour_changes_nothing(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    page = await open_page(embedded.origin, peer=peer)
    widget = await opened(page)
    await page.evaluate("Silas.setTheme({accent: 'red;} * {display:none', font: 'x; } body { display: none'})")
    await page.evaluate("Silas.setTheme(null); Silas.setTheme('dark')")
    await expect(widget.field).to_be_visible()
    style = await widget.frame.locator("html").get_attribute("style")
    assert "display" not in (style or "")


async def test_font_variable_of_the_page_is_the_widgets_font(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    embedded.body += "<style>:root { --silas-font: 'Courier New', monospace; }</style>"
    widget = await opened(await open_page(embedded.origin, peer=peer))
    await expect(widget.field).to_have_css("font-family", '"Courier New", monospace')


async def test_attributes_of_the_page_go_with_the_session(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    page = await open_page(embedded.origin, peer=peer)
    await opened(page)
    await peer.hears(1, "auth")
    async with page.expect_request("**/sessions") as asked:
        await page.evaluate("Silas.setAttributes({plan: 'gold', seats: 3, secret: {a: 1}})")
    assert ((await asked.value).post_data_json or {})["attributes"] == {"plan": "gold", "seats": "3"}


async def test_new_conversation_forgets_the_old_one(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    page = await open_page(embedded.origin, peer=peer)
    widget = await opened(page)
    await widget.say("Old words")
    await expect(widget.mine).to_have_count(1)
    peer.record.clear()
    async with page.expect_request("**/sessions") as asked:
        await page.evaluate("Silas.newConversation()")
    await expect(widget.mine).to_have_count(0)
    assert "resume_token" not in ((await asked.value).post_data_json or {})


async def test_identity_that_is_not_believed_tells_the_page_why(
    open_page: OpenPage, embedded: Site, peer: Peer
) -> None:
    page = await open_page(embedded.origin, peer=peer)
    await opened(page)
    await page.evaluate("Silas.identify('not.a.jwt')")
    await page.wait_for_function("seen.some(([name]) => name === 'error')")
    assert await _events(page, "error") == [{"code": "identity_key_missing"}]


async def test_shutdown_removes_the_widget_and_its_memory(open_page: OpenPage, demo: str, peer: Peer) -> None:
    page = await open_page(demo, peer=peer)
    widget = await opened(page)
    await widget.say("Forget me")
    await expect(widget.mine).to_have_count(1)
    await page.evaluate("Silas.shutdown()")
    await expect(page.locator("[data-silas]")).to_have_count(0)
    peer.record.clear()
    await page.reload()
    async with page.expect_request("**/sessions") as asked:
        await widget.open()
    assert "resume_token" not in ((await asked.value).post_data_json or {})


async def test_script_included_twice_is_one_widget(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    snippet = embedded.body[embedded.body.rindex("<script src") :]
    embedded.body += snippet
    page = await open_page(embedded.origin, peer=peer)
    await opened(page)
    await expect(page.locator("[data-silas]")).to_have_count(1)


async def test_phone_shows_the_widget_on_the_whole_screen(open_page: OpenPage, embedded: Site, peer: Peer) -> None:
    embedded.body = embedded.body.replace("<title>", "<meta name=viewport content='width=device-width'><title>")
    widget = await opened(
        await open_page(embedded.origin, peer=peer, viewport={"width": 375, "height": 740}, has_touch=True)
    )
    assert await widget.panel.bounding_box() == {"x": 0, "y": 0, "width": 375, "height": 740}
