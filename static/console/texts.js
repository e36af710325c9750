/* The texts of the scripts, in the page's language. The page carries them (script_texts.py). */

let texts = null;

export function text(name, values = {}) {
  texts ??= JSON.parse(document.getElementById("texts").dataset.texts);
  return texts[name].replace(/%\((\w+)\)s/g, (all, field) => values[field] ?? all);
}
