/* Keeps the order in which the lines of a batch are selected: it is the order in which they run. Each selected line shows
   its position. Without this file the lines run in the listed order. */

const orders = new WeakMap();

export function watchBatch() {
  document.addEventListener("change", (event) => {
    const lines = event.target.closest?.("fieldset.batch");
    if (!lines || event.target.name !== "selected") return;
    const others = orderOf(lines).filter((id) => id !== event.target.value);
    orders.set(lines, event.target.checked ? [...others, event.target.value] : others);
    number(lines);
  });
  document.addEventListener("formdata", (event) => {
    const lines = document.querySelector("fieldset.batch");
    if (!lines || event.target.id !== "answer") return;
    const sent = event.formData.getAll("selected");
    event.formData.delete("selected");
    for (const id of orderOf(lines)) if (sent.includes(id)) event.formData.append("selected", id);
  });
  document.addEventListener("htmx:afterSettle", numberAll);
  numberAll();
}

/* Lines that the server sends back as selected keep their order. */
function orderOf(lines) {
  if (!orders.has(lines)) {
    const ticked = boxes(lines).filter((box) => box.checked).map((box) => box.value);
    const before = (lines.dataset.ticked ?? "").split(" ").filter((id) => ticked.includes(id));
    orders.set(lines, [...before, ...ticked.filter((id) => !before.includes(id))]);
  }
  return orders.get(lines);
}

function numberAll() {
  document.querySelectorAll("fieldset.batch").forEach(number);
}

function number(lines) {
  const order = orderOf(lines);
  for (const box of boxes(lines)) {
    const place = order.indexOf(box.value) + 1;
    box.closest(".line").querySelector(".place").textContent = place ? String(place) : "";
  }
}

function boxes(lines) {
  return [...lines.querySelectorAll("[name=selected]")];
}
