/* Presses a key again that was kept: the page's shortcuts hear it first, then it does what the browser would have done.
   True if it did something. Text is never typed. */

const ARROWS = { arrowdown: 1, arrowright: 1, arrowup: -1, arrowleft: -1 };

export function replayKey(init) {
  if (document.querySelector("dialog[open]")) return false;
  const at = document.activeElement ?? document.body;
  if (!at.dispatchEvent(new KeyboardEvent("keydown", { ...init, bubbles: true, cancelable: true }))) return true;
  const key = init.key.toLowerCase();
  if (key === "enter") return activate(at);
  if (key === " " && at.matches("button, [type=radio], [type=checkbox]")) {
    at.click();
    return true;
  }
  if (key in ARROWS && at.matches("[type=radio]")) {
    const group = [...at.form.elements[at.name]];
    const next = group.at((group.indexOf(at) + ARROWS[key]) % group.length);
    next.focus({ preventScroll: true });
    next.click();
    return true;
  }
  return false;
}

function activate(at) {
  const wanted = at.matches("button, summary, a[href]") ? at : at.matches("input") && at.form?.querySelector("button:not([type=button])");
  if (!wanted || wanted.disabled) return false;
  wanted.click();
  return true;
}
