/* Keeps a signed identity fresh: asks the site's own server for a token, hands it to Silas, and asks again in time.
   The address answers {"token": "…"} for someone who is logged in, and anything else for nobody. Tokens are short-lived
   and one person's, so they are never part of a page that a cache may keep. */
(() => {
  "use strict";
  const script = document.currentScript;
  const url = script && script.dataset.identityUrl;
  if (!url) return;
  const LONGEST = 30 * 60 * 1000;

  // Calls before the loader has run are queued; `q.push` of a running loader calls at once.
  function call(...parts) {
    window.Silas = window.Silas || {};
    (window.Silas.q = window.Silas.q || []).push(parts);
  }

  // How long a token lasts, by its own claims, less a minute; half an hour at most.
  function lasts(token) {
    try {
      const { exp } = JSON.parse(atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/")));
      return Math.max(30000, Math.min(LONGEST, exp * 1000 - Date.now() - 60000));
    } catch {
      return LONGEST;
    }
  }

  async function refresh() {
    try {
      const answer = await fetch(url, { credentials: "same-origin", headers: { Accept: "application/json" } });
      const { token } = answer.ok ? await answer.json() : {};
      if (typeof token !== "string" || !token) return;
      call("identify", token);
      setTimeout(refresh, lasts(token));
    } catch {
      // Offline, or no answer of ours: the visitor chats without being identified.
    }
  }

  refresh();
})();
