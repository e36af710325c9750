/* Keeps the keys that are pressed before the console's scripts are there; `keys.js` presses them again, in order. A classic
   script, so that it listens from the first moment. */
(function () {
  "use strict";
  var kept = [];
  function keep(event) {
    if (event.target.matches && event.target.matches("input, textarea, select, [contenteditable]")) return;
    if (event.key === "Enter" && event.target.matches && event.target.matches("button, a, summary")) return;
    kept.push({ key: event.key, code: event.code, altKey: event.altKey, ctrlKey: event.ctrlKey, metaKey: event.metaKey, shiftKey: event.shiftKey });
  }
  document.addEventListener("keydown", keep, true);
  window.takeEarlyKeys = function () {
    document.removeEventListener("keydown", keep, true);
    return kept.splice(0);
  };
})();
