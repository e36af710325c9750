/* Work that a press leaves for after the next paint, so that its result is seen at once. Whatever is pressed or typed before
   then does the work first: the page is complete for every press. */

let waiting = [];

for (const type of ["keydown", "click", "submit", "input"]) document.addEventListener(type, doWaiting, true);

export function afterPaint(work) {
  waiting.push(work);
  if (waiting.length > 1) return;
  // A page out of sight is not painted.
  if (document.hidden) setTimeout(doWaiting);
  else requestAnimationFrame(() => setTimeout(doWaiting));
}

export function doWaiting() {
  for (const work of waiting.splice(0)) work();
}
