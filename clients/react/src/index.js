/* React component that puts the chat on a page. It embeds the loader of your installation and holds no chat itself. */
import { createElement, useEffect, useRef } from "react";

const LONGEST = 30 * 60 * 1000;
const EVENTS = ["ready", "error", "opened", "closed", "message", "unread", "handoff", "consent"];

/** Calls `window.Silas`; before the loader has run, the call is queued for it. */
export function silas(name, ...parts) {
  window.Silas = window.Silas || {};
  (window.Silas.q = window.Silas.q || []).push([name, ...parts]);
}

/** Adds the loader of `host` to the page, once. Rejects if it can't be loaded. */
export function loadSilas(host, { integrity } = {}) {
  const src = new URL("/widget/v1/loader.js", host).href;
  const known = [...document.scripts].find((one) => one.src === src);
  const script = known || document.createElement("script");
  if (script.silasLoaded) return script.silasLoaded;
  if (known) return Promise.resolve();
  script.silasLoaded = new Promise((resolve, reject) => {
    script.addEventListener("load", () => resolve());
    script.addEventListener("error", () => {
      script.remove();
      reject(new Error(`Silas: ${src} could not be loaded`));
    });
  });
  script.src = src;
  script.async = true;
  if (integrity) Object.assign(script, { integrity, crossOrigin: "anonymous" });
  document.head.append(script);
  return script.silasLoaded;
}

function lasts(token) {
  try {
    const { exp } = JSON.parse(atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/")));
    return Math.max(30000, Math.min(LONGEST, exp * 1000 - Date.now() - 60000));
  } catch {
    return LONGEST;
  }
}

/** Renders nothing, or the element that holds an inline chat. */
export function SilasChat({
  host,
  deployment,
  integrity,
  inline = false,
  language,
  theme,
  open,
  identity,
  attributes,
  onEvent,
  ...element
}) {
  const place = useRef(null);
  const heard = useRef(onEvent);
  heard.current = onEvent;

  useEffect(() => {
    let left = false;
    const settings = { deployment, language, theme, open, inline: inline ? place.current : undefined };
    loadSilas(host, { integrity }).then(
      () => left || silas("boot", Object.fromEntries(Object.entries(settings).filter(([, value]) => value != null))),
      (error) => heard.current?.("error", { code: "unavailable", message: error.message }),
    );
    const hear = EVENTS.map((name) => {
      const listener = ({ detail }) => heard.current?.(name, detail);
      addEventListener(`silas:${name}`, listener);
      return () => removeEventListener(`silas:${name}`, listener);
    });
    return () => {
      left = true;
      for (const stop of hear) stop();
    };
    // One chat a page: boot takes effect once, and another deployment needs another page.
  }, [host, deployment]);

  useEffect(() => {
    if (!identity) return undefined;
    let timer;
    let left = false;
    async function refresh() {
      const token = typeof identity === "function" ? await Promise.resolve(identity()).catch(() => null) : identity;
      if (left || !token) return;
      silas("identify", token);
      if (typeof identity === "function") timer = setTimeout(refresh, lasts(token));
    }
    refresh();
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [identity]);

  const said = JSON.stringify(attributes || {});
  useEffect(() => {
    if (said !== "{}") silas("setAttributes", JSON.parse(said));
  }, [said]);

  useEffect(() => {
    if (language) silas("setLocale", language);
  }, [language]);

  return inline ? createElement("div", { style: { height: 600 }, ...element, ref: place }) : null;
}
