/* Files in the reply composer: chosen, dropped or pasted, shown before they are sent, and sent one after another ahead of the
   text. What was refused stays, with the reason, until it is removed or sent again. The browser asks before a page with
   unsent files is left. */

import { text } from "./texts.js";

let items = [];
let sending = false;

export function watchAttachments() {
  document.addEventListener("click", (event) => event.target.closest?.("[data-attach]") && picker()?.click());
  document.addEventListener("change", (event) => {
    if (event.target.id !== "attach-files") return;
    add([...event.target.files]);
    event.target.value = "";
  });
  document.addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (!files.length || !event.target.matches?.("#reply-text")) return;
    event.preventDefault();
    add(files);
  });
  document.addEventListener("dragover", onDrag);
  document.addEventListener("dragleave", ({ relatedTarget }) => relatedTarget || form()?.classList.remove("dropping"));
  document.addEventListener("drop", onDrop);
  document.addEventListener("submit", onSubmit, true);
  addEventListener("beforeunload", (event) => items.length && event.preventDefault());
  document.addEventListener("htmx:afterSettle", show);
  show();
}

const form = () => document.querySelector("[data-composer=reply]");
const picker = () => document.querySelector("#attach-files");
const isReply = () => form() && document.querySelector("#writing").dataset.sheet !== "note";

function onDrag(event) {
  if (!isReply() || !event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  form().classList.toggle("dropping", Boolean(event.target.closest?.("#thread")));
}

function onDrop(event) {
  if (!isReply() || !event.dataTransfer?.files.length) return;
  event.preventDefault();
  form().classList.remove("dropping");
  if (event.target.closest?.("#thread")) add([...event.dataTransfer.files]);
}

function add(files) {
  const { mostBytes } = picker().dataset;
  const endings = picker().accept.split(",");
  const added = files.map((file) => {
    const isKnown = endings.some((ending) => file.name.toLowerCase().endsWith(ending));
    const isLarge = file.size > Number(mostBytes);
    const final = !isKnown ? text("file_kind") : isLarge ? text("file_too_large", { most: Number(mostBytes) / 2 ** 20 }) : "";
    return { file, once: crypto.randomUUID(), error: final, isFinal: Boolean(final) };
  });
  items = [...items, ...added];
  show();
  document.querySelector("#reply-text").focus();
}

function remove(item) {
  item.request?.abort();
  items = items.filter((one) => one !== item);
  show();
  (document.querySelector("#attached button") ?? document.querySelector("#reply-text"))?.focus();
}

/* Send the files first, and then the text if all of them went. */
async function onSubmit(event) {
  const { target } = event;
  if (target !== form() || !items.length) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (sending) return;
  const [address, token] = [picker().dataset.url, target.elements.csrfmiddlewaretoken.value];
  sending = true;
  for (const item of items.filter((one) => !one.isFinal)) {
    item.error = "";
    await send(item, address, token);
    if (item.isSent) items = items.filter((one) => one !== item);
    show();
  }
  sending = false;
  htmx.trigger(document.body, `silas:session:${document.querySelector("#writing").dataset.session}`);
  if (!items.length && document.querySelector("#reply-text").value.trim()) form().requestSubmit();
}

function send(item, address, token) {
  const body = new FormData();
  body.append("csrfmiddlewaretoken", token);
  body.append("once", item.once);
  body.append("file", item.file);
  const request = new XMLHttpRequest();
  item.request = request;
  return new Promise((done) => {
    request.upload.addEventListener("progress", ({ loaded, total }) => item.bar && Object.assign(item.bar, { max: total || 1, value: loaded }));
    request.addEventListener("loadend", () => {
      item.request = null;
      item.isSent = request.status === 204;
      if (!item.isSent) item.error = reason(request);
      done();
    });
    request.open("POST", address);
    request.send(body);
    show();
  });
}

function reason(request) {
  try {
    return JSON.parse(request.responseText).error.message;
  } catch {
    return text("file_not_sent");
  }
}

function show() {
  const list = document.querySelector("#attached");
  if (!list) return;
  for (const button of document.querySelectorAll("[data-attach]")) button.hidden = false;
  list.replaceChildren(...items.map(row));
  list.hidden = !items.length;
  document.querySelector("#reply-text").required = !items.length;
}

function row(item) {
  const line = document.createElement("li");
  item.picture ??= item.file.type.startsWith("image/") && !item.isFinal ? picture(item.file) : null;
  const name = Object.assign(document.createElement("span"), { className: "name", textContent: item.file.name });
  const drop = Object.assign(document.createElement("button"), { type: "button", className: "btn small plain", textContent: "×", ariaLabel: text("remove_file", { name: item.file.name }) });
  drop.addEventListener("click", () => remove(item));
  line.append(...(item.picture ? [item.picture] : []), name);
  if (item.request) {
    item.bar = Object.assign(document.createElement("progress"), { max: 1, value: 0, ariaLabel: text("sending_file", { name: item.file.name }) });
    line.append(item.bar);
  } else if (item.error) line.append(Object.assign(document.createElement("span"), { className: "problem", textContent: item.error }));
  line.append(drop);
  return line;
}

/* Drawn small, because a page of ours loads no pictures but its own. */
function picture(file) {
  const canvas = Object.assign(document.createElement("canvas"), { width: 48, height: 48, ariaHidden: "true" });
  createImageBitmap(file).then((map) => {
    const side = Math.min(map.width, map.height);
    canvas.getContext("2d").drawImage(map, (map.width - side) / 2, (map.height - side) / 2, side, side, 0, 0, 48, 48);
    map.close();
  }, () => canvas.remove());
  return canvas;
}
