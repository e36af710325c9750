/* Renders a growing answer: a small, safe part of Markdown as nodes, paragraphs, lists, emphasis, code, links. Images are never loaded
   (an image URL could carry data away); only http, https and mailto links are live. */

import { el } from "./dom.js";

const INLINE = /(`+)([^`]+)\1|!\[([^\]]*)\]\((?:[^()]|\([^()]*\))*\)|\[([^\]]+)\]\(((?:[^()\s]|\([^()\s]*\))+)\)|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\b(https?:\/\/[^\s<>"')\]]+[^\s<>"')\].,;:!?])|\[(\d{1,2})\]/g;
const ITEM = /^\s{0,6}(?:[-*•]|(\d{1,3})[.)])\s+(.*)$/;
const FENCE = /^```/;

export function link(address) {
  try {
    const { protocol, href } = new URL(address);
    return ["http:", "https:", "mailto:"].includes(protocol) ? href : "";
  } catch {
    return "";
  }
}

function anchor(label, address) {
  const href = link(address);
  return href ? el("a", { href, target: "_blank", rel: "noopener noreferrer nofollow" }, label) : label;
}

/* `cite(n)` gives the label for a [n] in the text, or null when there is no such citation. */
function inline(text, cite) {
  const parts = [];
  let done = 0;
  for (const match of text.matchAll(INLINE)) {
    const [all, , code, image, label, address, strong, soft, bare, number] = match;
    parts.push(text.slice(done, match.index));
    done = match.index + all.length;
    if (code !== undefined) parts.push(el("code", {}, code));
    else if (image !== undefined) parts.push(image);
    else if (label !== undefined) parts.push(anchor(label, address));
    else if (strong !== undefined) parts.push(el("strong", {}, ...inline(strong, cite)));
    else if (soft !== undefined) parts.push(el("em", {}, ...inline(soft, cite)));
    else if (bare !== undefined) parts.push(anchor(bare, bare));
    else parts.push(cite(Number(number)) ?? all);
  }
  parts.push(text.slice(done));
  return parts.filter((part) => part !== "");
}

function paragraph(lines, cite) {
  const parts = [];
  lines.forEach((line, index) => {
    if (index) parts.push(el("br"));
    parts.push(...inline(line.replace(/^#{1,6}\s+(.*)$/, "**$1**").replace(/^>\s?/, ""), cite));
  });
  return el("p", {}, ...parts);
}

function list(lines, cite) {
  const ordered = Boolean(ITEM.exec(lines[0])[1]);
  const items = [];
  for (const line of lines) {
    const match = ITEM.exec(line);
    if (match) items.push([match[2]]);
    else items.at(-1).push(line.trim());
  }
  const start = ordered ? ITEM.exec(lines[0])[1] : null;
  return el(ordered ? "ol" : "ul", { start: start === "1" ? null : start }, ...items.map((item) => el("li", {}, ...inline(item.join(" "), cite))));
}

/* Splits into blocks: {kind: "code" | "list" | "text", lines}. An unfinished fence (still streaming) counts as code. */
function blocks(text) {
  const result = [];
  let open = null;
  const start = (kind) => { open = { kind, lines: [] }; result.push(open); };
  for (const line of text.replace(/\r\n?/g, "\n").split("\n")) {
    if (open?.kind === "code") {
      if (FENCE.test(line)) open = null;
      else open.lines.push(line);
    } else if (FENCE.test(line)) start("code");
    else if (!line.trim()) open = null;
    else if (ITEM.test(line)) {
      if (open?.kind !== "list") start("list");
      open.lines.push(line);
    } else {
      if (!open) start("text");
      open.lines.push(line);
    }
  }
  return result;
}

/* The text as block nodes. */
export function markdown(text, cite = () => null) {
  return blocks(text).map(({ kind, lines }) => {
    if (kind === "code") return el("pre", { tabindex: "0" }, el("code", {}, lines.join("\n")));
    return kind === "list" ? list(lines, cite) : paragraph(lines, cite);
  });
}
