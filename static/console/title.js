/* The tab's title says how many conversations and cards wait, as the rail does: "(5) Review". */

const COUNTED = "#inbox-count, #review-count";
const PREFIX = /^\(\d+\) /;

export function watchTitle() {
  const rail = document.getElementById("rail");
  if (!rail) return;
  const tell = () => {
    const waiting = [...rail.querySelectorAll(COUNTED)].reduce((sum, count) => sum + (parseInt(count.textContent, 10) || 0), 0);
    const name = document.title.replace(PREFIX, "");
    const title = waiting ? `(${waiting}) ${name}` : name;
    if (document.title !== title) document.title = title;
  };
  const changes = new MutationObserver(tell);
  changes.observe(rail, { childList: true, subtree: true, characterData: true });
  changes.observe(document.head, { childList: true, subtree: true, characterData: true });
  tell();
}
