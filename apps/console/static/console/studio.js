/* How would the chat look? The real frame beside the form, told of what stands in the form and is not saved. The console
   is its page here: one parent, one origin, messages by name. */

const HEX = /^#[0-9a-f]{6}$/i;

export function watchStudio() {
  const stand = document.querySelector("[data-preview]");
  if (!stand) return;
  const form = document.querySelector("[data-looks]");
  const frame = document.createElement("iframe");
  frame.title = "The chat, as a test";
  frame.src = `${stand.dataset.src}#${encodeURIComponent(location.origin)}`;
  const bubble = document.createElement("button");
  Object.assign(bubble, { type: "button", className: "bubble", hidden: true });
  bubble.setAttribute("aria-label", "Open the chat");
  const shut = (closed) => {
    Object.assign(frame, { hidden: closed });
    bubble.hidden = !closed;
    (closed ? bubble : frame).focus();
  };
  bubble.addEventListener("click", () => shut(false));
  const tell = (silas, data = {}) => frame.contentWindow.postMessage({ silas, ...data }, location.origin);
  const show = () => form && dress(form, tell);
  addEventListener("message", ({ source, origin, data }) => {
    if (source !== frame.contentWindow || origin !== location.origin) return;
    if (data?.silas === "hello") {
      tell("init", { locale: document.documentElement.lang });
      show();
      stand.dataset.ready = "yes";
    } else if (data?.silas === "look") {
      stand.dataset.side = data.side;
      bubble.style.setProperty("--chosen", data.colours?.accent ?? "");
    } else if (data?.silas === "close") shut(true);
  });
  stand.append(frame, bubble);
  const renew = document.querySelector("[data-renew]");
  renew.hidden = false;
  renew.addEventListener("click", () => tell("renew"));
  form?.addEventListener("input", () => {
    document.querySelector("[data-unsaved]").hidden = false;
    show();
  });
}

function dress(form, tell) {
  const said = new FormData(form);
  const text = (name) => String(said.get(name) ?? "").trim();
  const theme = Object.fromEntries(["accent", "mode", "position", "font"].map((name) => [name, text(name)]).filter(([, value]) => value));
  const suggestions = text("suggestions").split("\n").map((line) => line.trim()).filter(Boolean).slice(0, 6);
  tell("preview", { looks: { title: text("title") || "Chat", greeting: text("greeting"), suggestions, theme } });
  document.querySelector("[data-contrast]").textContent = HEX.test(theme.accent ?? "") ? judged(theme.accent) : "";
}

/* What the widget makes of a colour that is hard to read, it makes by itself; the owner is told that it does. */
function judged(accent) {
  const white = contrast(luminance(accent), 1);
  const figure = `Contrast on white: ${white.toFixed(1)}.`;
  return white >= 4.5 ? `${figure} Easy to read.` : `${figure} Hard to read: the chat darkens it until it is not.`;
}

function contrast(one, other) {
  const [low, high] = [one, other].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function luminance(hex) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
