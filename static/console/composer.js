/* The composer: one sheet for replies and one for private notes. Drafts are kept in the session storage until they are sent,
   and each draft has a key of its own, so that it is saved once however often it arrives. */

const SHEETS = { reply: "#sheet-reply", note: "#sheet-note" };
let shown = "reply";
let shownIn = "";

export function watchComposer() {
  document.addEventListener("input", (event) => event.target.matches("[data-composer] textarea") && keep(event.target));
  document.addEventListener("click", (event) => {
    const tab = event.target.closest?.(".sheets [role=tab]");
    if (tab) show(tab.id === "sheet-note" ? "note" : "reply", true);
  });
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches?.(".sheets [role=tab]") || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    show(shown === "note" ? "reply" : "note", false);
    document.querySelector(SHEETS[shown]).focus();
  });
  document.addEventListener("htmx:afterSettle", dress);
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful && event.target.matches("[data-composer]")) forget(event.target);
  });
  dress();
}

/* After every swap: reopen the sheet and restore its draft. */
function dress() {
  const writing = document.querySelector("#writing");
  if (!writing) return;
  if (writing.dataset.session !== shownIn) [shown, shownIn] = ["reply", writing.dataset.session];
  for (const form of writing.querySelectorAll("[data-composer]")) restore(form);
  const tabs = writing.querySelector(".sheets");
  if (!tabs) return;
  tabs.hidden = false;
  show(shown, false);
  writing.querySelector("[data-canned]")?.removeAttribute("hidden");
}

function show(name, focus) {
  const writing = document.querySelector("#writing");
  shown = name;
  writing.dataset.sheet = name;
  for (const [each, id] of Object.entries(SHEETS)) {
    const tab = writing.querySelector(id);
    tab.ariaSelected = String(each === name);
    tab.tabIndex = each === name ? 0 : -1;
  }
  if (focus) writing.querySelector(`[data-composer="${name}"] textarea`)?.focus();
}

function place(form) {
  return `silas:draft:${document.querySelector("#writing").dataset.session}:${form.dataset.composer}`;
}

function keep(area) {
  const form = area.form;
  const draft = { text: area.value, once: form.elements.once.value };
  try {
    if (area.value) sessionStorage.setItem(place(form), JSON.stringify(draft));
    else sessionStorage.removeItem(place(form));
  } catch { /* a browser that keeps nothing keeps no draft */ }
}

function restore(form) {
  const area = form.querySelector("textarea");
  if (area.value) return;
  let draft = null;
  try { draft = JSON.parse(sessionStorage.getItem(place(form))); } catch { /* none */ }
  if (!draft) return;
  area.value = draft.text;
  form.elements.once.value = draft.once;
}

/* Delete the sent draft and give the next one a new key. */
function forget(form) {
  const fresh = crypto.getRandomValues(new Uint8Array(16));
  form.elements.once.value = [...fresh].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  try { sessionStorage.removeItem(place(form)); } catch { /* none was kept */ }
}
