/* Silas widget loader: puts the chat bubble and its iframe on a page and offers window.Silas.
   Talks only to its own iframe, at the exact origin this file came from. No dependency, no inline style. */
(() => {
  "use strict";
  if (window.Silas?.boot) return;
  const script = document.currentScript || document.querySelector('script[src*="/widget/v1/loader.js"]');
  const origin = new URL(script.src, location.href).origin;
  const queued = [...(window.Silas?.q || []), ...(window.silas?.q || [])];
  const listeners = {};
  let settings = {};
  let waiting = [];
  let parts = null;
  let ready = null;
  let live = false;
  let shown = false;
  let opened = false;
  let ending = 0;
  let inline = null;

  const css = `:host { all: initial !important }
[hidden] { display: none !important }
.bubble, .panel, .nudge { position: fixed; inset-block-end: 24px; inset-inline-end: 24px; z-index: 2147483000 }
.left { inset-inline: 24px auto }
.panel.inline { position: static; width: 100%; height: 100%; min-height: 320px; border-radius: 12px; box-shadow: 0 0 0 1px rgb(20 20 15 / .1) }
:host(.inline) { display: block !important; height: 100% !important }
.bubble { width: 56px; height: 56px; padding: 0; border: 0; border-radius: 50%; cursor: pointer; display: grid; place-items: center;
  background: var(--silas-accent, #2c49d4); color: var(--silas-ink, #fff); box-shadow: 0 8px 28px rgb(20 20 15 / .22) }
.bubble:focus-visible { outline: 3px solid var(--silas-focus, #2c49d4); outline-offset: 3px }
.worded { width: auto; max-width: calc(100vw - 32px); padding: 0 22px 0 18px; border-radius: 28px; grid: auto / auto minmax(0, 1fr); gap: 10px;
  font: 600 15px/1.3 var(--silas-font, system-ui), sans-serif }
.words { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; max-width: 100% }
svg { width: 26px; fill: none; stroke: currentColor; stroke-width: 1.7; stroke-linejoin: round }
.count { position: absolute; inset-block-start: -3px; inset-inline-end: -3px; min-width: 21px; padding: 0 5px; box-sizing: border-box;
  border-radius: 11px; background: #b3123d; color: #fff; font: 600 12px/21px system-ui, sans-serif }
.nudge { inset-block-end: 92px; display: flex; align-items: flex-start;
  width: max-content; max-width: min(320px, calc(100vw - 32px)); border-radius: 16px; background: var(--silas-surface, #fff); color: var(--silas-text, #1b1b18);
  box-shadow: 0 0 0 1px rgb(20 20 15 / .1), 0 8px 28px rgb(20 20 15 / .22); font: 15px/1.4 var(--silas-font, system-ui), sans-serif }
.nudge:empty { display: none }
.nudge button { padding: 12px 4px 12px 16px; border: 0; border-radius: 16px; background: none; color: inherit; font: inherit; text-align: start; cursor: pointer; overflow-wrap: anywhere }
.nudge .dismiss { flex: none; width: 44px; height: 44px; padding: 12px } .nudge svg { display: block; width: 20px; height: 20px }
.nudge button:focus-visible { outline: 3px solid var(--silas-focus, #2c49d4); outline-offset: -3px }
@media (prefers-reduced-motion: no-preference) { .nudge > * { animation: appear .2s ease-out } @keyframes appear { from { opacity: 0 } } }
.panel { width: 388px; height: min(680px, calc(100vh - 48px)); border-radius: 20px; overflow: hidden;
  background: var(--silas-surface, #fff); box-shadow: 0 0 0 1px rgb(20 20 15 / .1), 0 20px 60px rgb(20 20 15 / .22) }
iframe { display: block; width: 100%; height: 100%; border: 0; color-scheme: normal }
@media (max-width: 480px) {
  .nudge { inset-block-end: 84px; inset-inline: auto 16px } .nudge.left { inset-inline: 16px auto }
  .bubble { inset-block-end: 16px; inset-inline: auto 16px } .bubble.left { inset-inline: 16px auto }
  .panel:not(.inline) { inset: 0 !important; width: 100%; height: 100%; border-radius: 0; box-shadow: none } }`;

  function make(tag, attributes, space = "http://www.w3.org/1999/xhtml") {
    const node = document.createElementNS(space, tag);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    return node;
  }

  const store = () => `silas:${settings.deployment}`;

  // If the browser blocks storage in the iframe, this tab keeps the resume token of the conversation, never its content.
  function kept() {
    try {
      return JSON.parse(sessionStorage.getItem(store()));
    } catch {
      return null;
    }
  }

  // `data-theme="dark"` is short for {mode: "dark"}.
  function mode(theme) {
    return typeof theme === "string" ? { mode: theme } : theme;
  }

  const BALLOON = "M5 5h14a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2h-7l-5 4v-4H5a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2Z";
  const CROSS = "M6 6l12 12M18 6L6 18";
  function icon(d) {
    const space = "http://www.w3.org/2000/svg";
    const svg = make("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, space);
    svg.append(make("path", { d }, space));
    return svg;
  }

  function mount() {
    const host = make("div", { "data-silas": "" });
    const root = host.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    root.adoptedStyleSheets = [sheet];
    const bubble = make("button", { class: "bubble", type: "button", hidden: "", "aria-haspopup": "dialog" });
    const words = make("span", { class: "words", dir: "auto", hidden: "" });
    const count = make("span", { class: "count", hidden: "" });
    // There from the start and empty, so that screen readers read out what appears in it.
    const nudge = make("div", { class: "nudge", role: "status" });
    const panel = make("div", { class: "panel", role: "dialog", hidden: "" });
    const src = `${origin}/widget/v1/${encodeURIComponent(settings.deployment)}/#${encodeURIComponent(location.origin)}`;
    const frame = make("iframe", { src });
    bubble.append(icon(BALLOON), words, count);
    bubble.onclick = toggle;
    panel.append(frame);
    root.append(panel, nudge, bubble);
    parts = { host, bubble, nudge, words, count, panel, frame, labels: {} };
    inline = inlineContainer();
    if (inline) {
      host.className = "inline";
      panel.className = "panel inline";
      panel.setAttribute("role", "region");
      opened = true;
    }
    (inline || document.body).append(host);
    const look = firstLook();
    if (look) wear(look);
    // A frame that has loaded and says nothing was refused: this website is not listed, or the key is unknown.
    frame.onload = () => setTimeout(() => hideDead(host), 1000);
    setTimeout(() => hideDead(host) && emit("error", { code: "unavailable" }), 15000);
  }

  // Shows the button before the frame has loaded: as on this tab's last page, or as the page's code says.
  function firstLook() {
    try {
      const last = JSON.parse(sessionStorage.getItem(`${store()}:look`));
      if (last) return last;
    } catch {
      // Storage is blocked in the page.
    }
    const { accent = "", position: side, launcher } = { ...settings, ...mode(settings.theme) };
    const labels = { title: "Chat", open: "Chat" };
    return /^#[0-9a-f]{6}$/i.test(accent) && { colours: { accent, ink: inkOn(accent) }, side, launcher, labels };
  }

  function hideDead(host) {
    if (live || parts?.host !== host) return false;
    shown = false;
    render();
    return true;
  }

  // Much the same as the frame's, whose answer comes later.
  function inkOn(hex) {
    const [r, g, b] = [1, 3, 5].map((at) => (parseInt(hex.slice(at, at + 2), 16) / 255) ** 2.2);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#0e1230" : "#fff";
  }

  function wear({ colours, side, launcher, labels }) {
    for (const key in colours) parts.host.style.setProperty(`--silas-${key}`, colours[key]);
    for (const part of [parts.bubble, parts.nudge, parts.panel]) part.classList.toggle("left", side === "left");
    parts.words.textContent = launcher || "";
    parts.words.hidden = !launcher;
    parts.bubble.classList.toggle("worded", Boolean(launcher));
    parts.labels = labels;
    shown = true;
    render();
  }

  // The container of an inline chat: an element, or a selector of one.
  function inlineContainer() {
    const target = settings.inline;
    return target instanceof Element ? target : target ? document.querySelector(target) : null;
  }

  function render() {
    const { bubble, nudge, words, count, panel, frame, labels } = parts;
    const open = words.textContent || labels.open;
    panel.hidden = !(opened && live);
    bubble.hidden = !shown || !panel.hidden || Boolean(inline);
    nudge.hidden = bubble.hidden;
    bubble.setAttribute("aria-label", count.hidden ? open : `${open} (${count.textContent})`);
    panel.setAttribute("aria-label", labels.title);
    frame.title = labels.title;
  }

  /* A proactive message above the bubble; the frame chooses it. */
  function showNudge({ id, text, dismiss }) {
    if (opened || inline) return;
    const open = make("button", { type: "button", dir: "auto" });
    open.textContent = text;
    open.onclick = () => answer(id);
    const shut = make("button", { type: "button", class: "dismiss", "aria-label": dismiss });
    shut.append(icon(CROSS));
    shut.onclick = () => {
      hideNudge();
      parts.bubble.focus();
    };
    parts.nudge.replaceChildren(open, shut);
  }

  function hideNudge() { parts?.nudge.replaceChildren(); }

  function answer(id) {
    open();
    tell("answer", { id });
  }

  function tellPage() {
    const { host, pathname: path } = location;
    if (live && !inline) tell("page", { host, path });
  }

  // A site may show another page without loading it.
  let { pathname } = location;
  function moved() {
    if (location.pathname === pathname) return;
    ({ pathname } = location);
    hideNudge();
    tellPage();
  }
  addEventListener("popstate", moved);
  window.navigation?.addEventListener("currententrychange", moved);

  function emit(event, detail) {
    if (event === "ready") ready = detail;
    for (const fn of [...(listeners[event] || [])]) {
      try { fn(detail); } catch (error) { reportError(error); }
    }
    dispatchEvent(new CustomEvent(`silas:${event}`, { detail }));
  }

  // Messages sent before the iframe is ready are queued and sent in order once it is.
  function tell(silas, data) {
    if (live) parts.frame.contentWindow.postMessage({ silas, ...data }, origin);
    else waiting.push([silas, data]);
  }

  const EVENTS = ["ready", "error", "message", "handoff", "consent"];
  const handlers = {
    hello() {
      live = true;
      const { language, locale = language, theme } = settings;
      const { lang } = document.documentElement;
      const font = getComputedStyle(document.documentElement).getPropertyValue("--silas-font").trim();
      tell("init", { font, opened, locale, lang, theme: mode(theme), inline: Boolean(inline), kept: kept() });
      for (const [silas, data] of waiting.splice(0)) tell(silas, data);
      render();
    },
    look({ silas, ...look }) {
      wear(look);
      try {
        sessionStorage.setItem(`${store()}:look`, JSON.stringify(look));
      } catch {
        // Storage is blocked in the page: the next one shows the button when its frame has loaded.
      }
    },
    unread({ count, shown: number, text }) {
      parts.count.textContent = number;
      parts.count.hidden = !count;
      render();
      emit("unread", { count, text });
    },
    keep({ kept: fields }) {
      try {
        sessionStorage.setItem(store(), JSON.stringify(fields));
      } catch {
        // Storage is blocked in the page as well: the conversation lasts as long as the page.
      }
    },
    proactive: showNudge,
    where: tellPage,
    event({ event, detail }) { if (EVENTS.includes(event)) emit(event, detail); },
    close,
    gone: remove,
  };

  addEventListener("message", ({ source, origin: from, data }) => {
    if (!parts || source !== parts.frame.contentWindow || from !== origin) return;
    if (Object.hasOwn(handlers, data?.silas)) handlers[data.silas](data);
  });

  function remove() {
    if (!ending) return;
    clearTimeout(ending);
    parts.host.remove();
    parts = ready = inline = null;
    live = shown = false;
    ending = 0;
    settings = {};
    waiting = [];
  }

  function boot(options) {
    remove();
    if (settings.deployment) return;
    settings = { ...script.dataset, ...options };
    if (!settings.deployment) throw new Error("Silas.boot: a deployment key is needed");
    if (settings.attributes) setAttributes(settings.attributes);
    if (settings.identity) identify(settings.identity);
    // The inline container may come after this script in the page.
    if (document.body && !(settings.inline && document.readyState === "loading")) mount();
    else addEventListener("DOMContentLoaded", mount);
    if (![undefined, null, false, "false"].includes(settings.open)) open();
  }

  function open() {
    if (opened || ending) return;
    opened = true;
    hideNudge();
    tell("open");
    if (live) {
      render();
      parts.frame.focus();
    }
    emit("opened", {});
  }

  function close() {
    if (!opened || inline) return;
    opened = false;
    tell("close");
    if (live) {
      render();
      parts.bubble.focus();
    }
    emit("closed", {});
  }

  function toggle() { if (opened) close(); else open(); }
  function newConversation() { tell("renew"); }
  function setTheme(theme) { tell("theme", { theme: mode(theme) }); }
  function setLocale(locale) { tell("locale", { locale }); }
  function identify(jwt) { tell("identify", { jwt }); }
  function setAttributes(attributes) { tell("attributes", { attributes }); }

  // For logging out: this browser forgets the conversation.
  function shutdown() {
    if (!parts || ending) return;
    opened = shown = false;
    render();
    tell("shutdown");
    ending = setTimeout(remove, 1000);
  }

  function on(event, fn) {
    (listeners[event] ||= new Set()).add(fn);
    if (event === "ready" && ready) fn(ready);
  }
  function off(event, fn) { listeners[event]?.delete(fn); }

  const api = { boot, open, close, toggle, identify, setAttributes, setLocale, setTheme, newConversation, shutdown, on, off };
  const q = { push(...calls) { for (const [name, ...rest] of calls) if (Object.hasOwn(api, name)) api[name](...rest); } };
  window.Silas = { ...api, q };
  window.silas = (...call) => q.push(call);
  if (script.dataset.deployment) boot();
  q.push(...queued);
})();
