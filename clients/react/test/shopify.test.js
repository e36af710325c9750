/* The Liquid snippet, rendered as Shopify does, with its own filters stood in for. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Liquid } from "liquidjs";

const engine = new Liquid({ strictFilters: true });
engine.registerFilter("asset_url", (name) => `//cdn.example/assets/${name}`);
const snippet = readFileSync(new URL("../../shopify/snippets/silas-chat.liquid", import.meta.url), "utf8");

function render(given) {
  return engine.parseAndRenderSync(snippet, { request: { locale: { iso_code: "de" } }, ...given }).trim();
}

const SET = { host: "https://chat.example.com", deployment: "KEY" };

test("a visitor gets the loader alone", () => {
  assert.equal(
    render({ ...SET, identity_url: "/apps/silas/identity" }),
    '<script src="https://chat.example.com/widget/v1/loader.js" data-deployment="KEY" data-language="de" async></script>',
  );
});

test("a customer gets the identity script as well, and no token or secret is in the page", () => {
  const page = render({ ...SET, customer: { id: 1 }, identity_url: "/apps/silas/identity" });
  assert.match(page, /^<script src="\/\/cdn.example\/assets\/silas-identity.js" data-identity-url="\/apps\/silas\/identity" async>/);
  assert.match(page, /loader.js/);
});

test("without its settings there is no chat, and a setting can't leave its attribute", () => {
  assert.equal(render({ host: "https://chat.example.com" }), "");
  assert.doesNotMatch(render({ ...SET, deployment: '"><script>x()</script>' }), /<script>x/);
});
