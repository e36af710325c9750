/* The visitor features in the form, as the widget expects them. */

const GROUPS = ["pictures", "pdfs", "texts", "office"];

export function offersIn(form, text) {
  const ticked = (name) => Boolean(form.elements[name]?.checked);
  const endings = GROUPS.filter(ticked).flatMap((name) => form.elements[name].dataset.endings.split(" "));
  const consent = { text: text("consent_text"), link: text("consent_link"), version: text("consent_version") };
  return {
    files: endings.length ? { endings, most_bytes: Number(text("file_megabytes")) * 1024 * 1024 } : null,
    consent: consent.text ? consent : null,
    form: [...form.querySelectorAll(".asks")].map((place, number) => question(number, text, ticked)).filter(({ kind, label }) => kind && label),
    conversations: ticked("conversations"),
    transcripts: ticked("transcripts"),
    rating: text("rating"),
  };
}

function question(number, text, ticked) {
  const [kind, label, choices] = ["kind", "label", "choices"].map((name) => text(`q${number}_${name}`));
  return { id: `preview-${number}`, kind, label, required: ticked(`q${number}_required`), choices: choices.split("\n").map((line) => line.trim()).filter(Boolean) };
}
