/* Rates the conversation with stars or thumbs and a comment; can be changed for 24 hours. */

import { el } from "./dom.js";
import { onOffers, requestJson } from "./offers.js";
import { panelText } from "./i18n.js";
import { sheetOf } from "./sheet.js";

const FACES = { stars: [[1, "★"], [2, "★"], [3, "★"], [4, "★"], [5, "★"]], thumbs: [[5, "👍"], [1, "👎"]] };
const PROBLEMS = { rating_settled: "settled", nothing_said: "nothing" };

export function wireRating(chat) {
  function section(scale) {
    const inputs = FACES[scale].map(([score]) => el("input", { type: "radio", name: "score", value: score, "aria-label": named(scale, score), onchange: light }));
    const marks = inputs.map((input, index) => el("label", { class: "score", title: named(scale, input.value) }, input, el("span", { "aria-hidden": "true" }, FACES[scale][index][1])));
    const comment = el("textarea", { id: "rating-words", rows: 2, maxlength: 1000 });
    const button = el("button", { class: "choice", disabled: true }, panelText("rate"));
    const state = el("p", { class: "quiet", role: "status" });
    const form = el("form", { class: "field", onsubmit: send },
      el("fieldset", { class: scale }, el("legend", {}, panelText("rating")), ...marks),
      el("label", { for: comment.id }, `${panelText("comment")} (${panelText("optional")})`), comment, el("div", { class: "pressed" }, button), state);

    const chosen = () => Number(inputs.find((input) => input.checked)?.value || 0);

    function light() {
      marks.forEach((mark, index) => mark.classList.toggle("lit", scale === "stars" ? Number(inputs[index].value) <= chosen() : inputs[index].checked));
      button.disabled = !chosen();
    }

    async function send(event) {
      event.preventDefault();
      button.disabled = true;
      try {
        await requestJson(chat, "rating", { method: "PUT", json: { score: chosen(), comment: comment.value } });
        state.textContent = panelText("thanks");
      } catch (refusal) {
        state.textContent = panelText(PROBLEMS[refusal.code] || "failed");
      }
      button.disabled = false;
    }

    async function recall() {
      const { score, comment: words } = await requestJson(chat, "rating");
      if (!score || chosen()) return;
      inputs.forEach((input) => { input.checked = Number(input.value) === score; });
      comment.value = words;
      light();
    }

    recall().catch(() => {});
    return el("section", {}, form);
  }

  onOffers(chat, ({ rating }) => sheetOf(chat).put("rating", Object.hasOwn(FACES, rating) && (() => section(rating))));
}

function named(scale, score) {
  return scale === "stars" ? panelText("stars", { score }) : panelText(Number(score) === 5 ? "up" : "down");
}
