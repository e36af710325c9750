/* Sends files that the visitor picks, drops or pastes. Each is shown at once, sent once, and downloaded with the
   conversation's token; pictures are shown as thumbnails of a fixed size. The server checks what a file really is. */

import { part } from "./chat.js";
import { el, icon } from "./dom.js";
import { dateLocale, panelText, t } from "./i18n.js";
import { newId, onOffers, request, requestJson } from "./offers.js";

const clip = () => icon("M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.3 3.3 0 0 1 4.7 4.7l-8.5 8.5a1.7 1.7 0 0 1-2.4-2.4L14.5 7");
const AT_ONCE = 5;
const PICTURES = ["png", "jpeg", "webp", "gif"];
const THUMBNAIL = { width: 200, height: 150 };
const PROBLEMS = { file_kind: "fileKind", file_too_large: "fileLarge", files_full: "filesFull", rate_limited: "often" };

export function wireFiles(chat) {
  const { log } = chat;
  const shown = new Map();
  let conversation = 0;
  let offer = null;
  const input = el("input", { type: "file", multiple: true, hidden: true, onchange: picked });
  const button = el("button", { type: "button", class: "icon", "data-attach": true, hidden: true, onclick: () => input.click() }, clip());
  part("composer").prepend(button, input);
  part("shell").addEventListener("dragover", (event) => offer && event.preventDefault());
  part("shell").addEventListener("drop", (event) => given(event, event.dataTransfer.files));
  part("composer").addEventListener("paste", (event) => event.clipboardData.files.length && given(event, event.clipboardData.files));

  function wire({ files }) {
    offer = files;
    input.accept = files ? files.endings.join(",") : "";
    button.hidden = !files;
    name();
  }

  function name() {
    button.setAttribute("aria-label", panelText("attach"));
  }

  function picked() {
    take([...input.files]);
    input.value = "";
  }

  function given(event, files) {
    if (!offer) return;
    event.preventDefault();
    take([...files]);
  }

  function take(files) {
    if (part("composer").inert) return;
    files.slice(0, AT_ONCE).forEach(start);
    if (files.length > AT_ONCE) chat.notice(panelText("filesMany", { n: AT_ONCE }));
  }

  function start(file) {
    const { endings, most_bytes: most } = offer;
    const row = place(file.name, file.size, { pending: true, timestamp: new Date().toISOString() }, { picture: isPicture(file) && file });
    const isKnown = endings.some((ending) => file.name.toLowerCase().endsWith(ending));
    if (!isKnown || file.size > most) fail(row, panelText(isKnown ? "fileLarge" : "fileKind"));
    else send(row, file, newId());
  }

  async function send(row, file, id) {
    const here = conversation;
    note(row, panelText("sending"));
    const body = new FormData();
    body.append("client_id", id);
    body.append("file", file);
    try {
      const kept = await requestJson(chat, "files", { method: "POST", body });
      row.remove();
      if (conversation === here) show({ ...kept, timestamp: row.dataset.at }, file);
    } catch (refusal) {
      const known = PROBLEMS[refusal.code];
      if (known) fail(row, panelText(known));
      else fail(row, panelText("failed"), () => send(row, file, id));
    }
  }

  /* `picture` is what its thumbnail shows: a blob, or a function that brings one once it is in sight. */
  function place(name, size, options, { action = null, picture = null } = {}) {
    const text = [el("span", { class: "name" }, name), el("span", { class: "size" }, sized(size))];
    const content = [picture && thumbnail(name, picture), ...text];
    const look = picture ? "file picture" : "file";
    const card = action ? el("button", { type: "button", class: look, onclick: action, title: panelText("save", { name }) }, ...content) : el("div", { class: look }, ...content);
    return log.place(el("div", { class: options.sender === "human" ? "row" : "row mine" }, sender(options), card), options);
  }

  function thumbnail(name, picture) {
    const image = el("img", { alt: name, ...THUMBNAIL });
    if (picture instanceof Blob) paint(image, picture);
    else {
      const sight = new IntersectionObserver(async ([seen]) => {
        if (!seen.isIntersecting) return;
        sight.disconnect();
        const blob = await picture();
        if (blob) paint(image, blob);
      });
      sight.observe(image);
    }
    return image;
  }

  function paint(image, blob) {
    const address = URL.createObjectURL(blob);
    image.onload = image.onerror = () => URL.revokeObjectURL(address);
    image.src = address;
  }

  /* The name of the agent who sent it; a file without one is the visitor's own. */
  function sender(options) {
    return options.sender === "human" ? el("p", { class: "who" }, el("b", {}, options.author || t("person"))) : null;
  }

  function note(row, ...content) {
    row.querySelector(".unsent")?.remove();
    row.append(el("span", { class: "unsent", role: "status" }, ...content));
  }

  function fail(row, text, again = null) {
    note(row, text, again && " ", again && el("button", { type: "button", class: "again", onclick: again }, panelText("again")));
  }

  /* Shows a stored file, from its recorded frame or the response to our own request, whichever comes first. */
  function show(frame, file = null) {
    if (shown.has(frame.file_id)) return;
    const picture = PICTURES.includes(frame.kind) && (file ?? (() => load(frame)));
    shown.set(frame.file_id, place(frame.name, frame.size, frame, { action: () => save(frame), picture }));
  }

  async function load({ file_id: id }) {
    const response = await request(chat, `files/${id}`).catch(() => null);
    return response?.ok ? response.blob() : null;
  }

  async function save({ file_id: id, name }) {
    const response = await request(chat, `files/${id}`).catch(() => null);
    if (!response?.ok) {
      chat.notice(panelText(response?.status === 404 ? "fileGone" : "failed"));
      return;
    }
    const href = URL.createObjectURL(await response.blob());
    const anchor = el("a", { href, download: name, hidden: true });
    document.body.append(anchor);
    anchor.click();
    anchor.remove();
    setTimeout(() => URL.revokeObjectURL(href), 60000);
  }

  chat.onFrame("file", (frame) => show(frame));
  chat.on("language", name);
  chat.on("forgotten", () => {
    conversation += 1;
    shown.clear();
  });
  onOffers(chat, wire);
}

function isPicture(file) {
  return PICTURES.some((kind) => file.type === `image/${kind}`);
}

function sized(bytes) {
  const [value, unit] = bytes >= 1e6 ? [bytes / 1e6, "megabyte"] : [Math.max(1, bytes / 1e3), "kilobyte"];
  return new Intl.NumberFormat(dateLocale(), { style: "unit", unit, unitDisplay: "short", maximumFractionDigits: 1 }).format(value);
}
