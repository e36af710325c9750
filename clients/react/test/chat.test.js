/* The component against the real loader of this repository, in jsdom. The frame of the chat is not loaded. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { JSDOM } from "jsdom";

const LOADER = readFileSync(new URL("../../../apps/widgets/static/widgets/loader.js", import.meta.url), "utf8");
const IDENTITY = readFileSync(new URL("../../wordpress/silas-chat/silas-identity.js", import.meta.url), "utf8");
const HOST = "https://chat.example.com";
const OURS = ["window", "document", "navigator", "addEventListener", "removeEventListener", "HTMLElement", "Node"];

let dom;
let calls;
let mounted;
let modules;

function token(seconds) {
  const claims = Buffer.from(JSON.stringify({ exp: Math.floor(Date.now() / 1000) + seconds })).toString("base64url");
  return `e30.${claims}.c2ln`;
}

async function settle() {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

before(async () => {
  dom = new JSDOM("<!doctype html><body></body>", { url: "https://shop.example", runScripts: "outside-only" });
  dom.window.CSSStyleSheet.prototype.replaceSync ??= () => {};
  for (const name of OURS) {
    const value = name === "window" ? dom.window : dom.window[name];
    const bound = name.endsWith("EventListener") ? value.bind(dom.window) : value;
    Object.defineProperty(globalThis, name, { value: bound, configurable: true, writable: true });
  }
  globalThis.IS_REACT_ACT_ENVIRONMENT = true;
  modules = { react: await import("react"), client: await import("react-dom/client"), ...(await import("../src/index.js")) };
});

beforeEach(() => {
  document.head.innerHTML = "";
  document.body.innerHTML = "<div id=root></div>";
  delete dom.window.Silas;
  calls = [];
});

afterEach(async () => {
  if (mounted) await modules.react.act(() => mounted.unmount());
  mounted = undefined;
});

after(() => dom.window.close());

async function render(props) {
  mounted ??= modules.client.createRoot(document.getElementById("root"));
  const chat = modules.react.createElement(modules.SilasChat, { host: HOST, deployment: "KEY", ...props });
  await modules.react.act(async () => {
    mounted.render(chat);
    await settle();
  });
}

function scripts() {
  return [...document.scripts].filter((one) => one.src.endsWith("/widget/v1/loader.js"));
}

/** What the loader does when it arrives: run, with the queue that was waiting. */
async function arrive({ recorded = true } = {}) {
  const queued = window.Silas?.q || [];
  if (recorded) {
    window.Silas = { q: { push: (...more) => calls.push(...more) } };
    calls.push(...queued);
  } else {
    Object.defineProperty(document, "currentScript", { value: scripts()[0], configurable: true });
    dom.window.eval(LOADER);
  }
  await modules.react.act(async () => {
    scripts()[0].dispatchEvent(new dom.window.Event("load"));
    await settle();
  });
}

test("the loader is added once and booted with what was set", async () => {
  await render({ language: "de", theme: { accent: "#112233" } });
  await render({ language: "de", theme: { accent: "#112233" } });
  assert.equal(scripts().length, 1);
  assert.equal(scripts()[0].src, `${HOST}/widget/v1/loader.js`);
  await arrive();
  const boots = calls.filter(([name]) => name === "boot");
  assert.deepEqual(boots, [["boot", { deployment: "KEY", language: "de", theme: { accent: "#112233" } }]]);
});

test("a token from the site's server is handed over, and a failing server identifies nobody", async () => {
  const signed = token(600);
  const ask = async () => signed;
  await render({ identity: ask });
  await arrive();
  assert.deepEqual(calls.filter(([name]) => name === "identify"), [["identify", signed]]);
  calls.length = 0;
  const broken = async () => { throw new Error("500"); };
  await render({ identity: broken });
  assert.deepEqual(calls.filter(([name]) => name === "identify"), []);
});

test("attributes are told when they change and only then", async () => {
  await render({ attributes: { plan: "gold" } });
  await arrive();
  await render({ attributes: { plan: "gold" } });
  await render({ attributes: { plan: "free" } });
  assert.deepEqual(calls.filter(([name]) => name === "setAttributes").map(([, said]) => said.plan), ["gold", "free"]);
});

test("a loader that can't be loaded is an event, and is tried again by the next mount", async () => {
  const events = [];
  await render({ onEvent: (name, detail) => events.push([name, detail.code]) });
  await modules.react.act(async () => {
    scripts()[0].dispatchEvent(new dom.window.Event("error"));
    await settle();
  });
  assert.deepEqual(events, [["error", "unavailable"]]);
  assert.equal(scripts().length, 0);
});

test("the real loader takes the queue: one bubble's frame, of our origin, for this deployment", async () => {
  await render({ identity: token(600) });
  await arrive({ recorded: false });
  const hosts = document.querySelectorAll("[data-silas]");
  assert.equal(hosts.length, 1);
  const frame = hosts[0].shadowRoot.querySelector("iframe");
  assert.equal(new URL(frame.src).origin, HOST);
  assert.ok(frame.src.includes("KEY"), frame.src);
});

test("the identity script of WordPress and Shopify asks the site's own address and queues the token", async () => {
  const signed = token(600);
  const asked = [];
  dom.window.fetch = async (url, how) => {
    asked.push([url, how.credentials]);
    return { ok: true, json: async () => ({ token: signed }) };
  };
  const script = document.createElement("script");
  script.dataset.identityUrl = "/apps/silas/identity";
  Object.defineProperty(document, "currentScript", { value: script, configurable: true });
  dom.window.eval(IDENTITY);
  await settle();
  assert.deepEqual(asked, [["/apps/silas/identity", "same-origin"]]);
  assert.deepEqual([...window.Silas.q].map((call) => [...call]), [["identify", signed]]);
});

test("the identity script leaves whoever is not logged in alone", async () => {
  dom.window.fetch = async () => ({ ok: false, json: async () => ({}) });
  const script = document.createElement("script");
  script.dataset.identityUrl = "/identity";
  Object.defineProperty(document, "currentScript", { value: script, configurable: true });
  dom.window.eval(IDENTITY);
  await settle();
  assert.equal(window.Silas, undefined);
});
