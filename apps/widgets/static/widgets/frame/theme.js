/* Applies the colours of the deployment and what the host page overrides.

The accent is kept true where it is a background (`fill`), with a text colour (`ink`) that can be read on it. Links and
marks on the surface use a shade of it that can be read there (`accent`). */

const HEX = /^#[0-9a-f]{6}$/i;
const FONT = /^[\w\s"',.-]{1,200}$/;
const SURFACE = { light: "#ffffff", dark: "#16181b" };
/* In order of preference; on any colour, white or black has a contrast of at least 4.5. */
const INK = ["#ffffff", "#0e1230", "#000000"];
const wantsDark = matchMedia("(prefers-color-scheme: dark)");

function channels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function luminance(hex) {
  const [r, g, b] = channels(hex).map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function mix(hex, other, share) {
  const to = channels(other);
  return `#${channels(hex).map((c, i) => Math.round(c + (to[i] - c) * share).toString(16).padStart(2, "0")).join("")}`;
}

export function inkOn(fill) {
  return INK.find((ink) => contrast(ink, fill) >= 4.5);
}

/* The same hue, moved towards black or white until text in it can be read on the surface. */
export function readable(accent, mode) {
  let colour = accent;
  for (let step = 1; step <= 18 && contrast(colour, SURFACE[mode]) < 4.9; step += 1) {
    colour = mix(accent, mode === "dark" ? "#ffffff" : "#000000", step / 20);
  }
  return colour;
}

export class Theme {
  constructor(onLook) {
    this.onLook = onLook;
    this.layers = [{}, {}];
    wantsDark.addEventListener("change", () => this.paint());
  }

  /* The deployment's theme is the first layer, the host page's the second. */
  fromDeployment(theme) {
    this.layers[0] = theme || {};
    this.paint();
  }

  fromPage(theme) {
    if (theme && typeof theme === "object") this.layers[1] = { ...this.layers[1], ...theme };
    this.paint();
  }

  paint() {
    const theme = { ...this.layers[0], ...this.layers[1] };
    const mode = ["light", "dark"].includes(theme.mode) ? theme.mode : wantsDark.matches ? "dark" : "light";
    const root = document.documentElement;
    root.dataset.mode = mode;
    if (FONT.test(theme.font || "")) root.style.setProperty("--font", theme.font);
    if (HEX.test(theme.accent || "")) this.tint(root, theme.accent, mode);
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const colours = { accent: colour("fill"), ink: colour("ink"), surface: colour("surface"), text: colour("text"), focus: colour("accent") };
    this.onLook({ colours, side: theme.position === "left" ? "left" : "right", launcher: theme.launcher });
  }

  tint(root, fill, mode) {
    const accent = readable(fill, mode);
    const set = { accent, fill, ink: inkOn(fill), "accent-soft": mix(accent, SURFACE[mode], mode === "dark" ? 0.84 : 0.92), "accent-line": mix(accent, SURFACE[mode], 0.7) };
    for (const [name, value] of Object.entries(set)) root.style.setProperty(`--${name}`, value);
  }
}
