/* Shows who answers (the agent's banner) and the visitor's access level with its expiry. */

import { lasting, named, t } from "./i18n.js";

export class Presence {
  constructor(onExpired) {
    this.chip = document.querySelector("[data-level]");
    this.banner = document.querySelector("[data-owner]");
    this.onExpired = onExpired;
    this.owner = "bot";
    this.name = "";
  }

  access({ level, expires_at: until }) {
    clearInterval(this.clock);
    this.level = level;
    this.until = until ? Date.parse(until) : 0;
    this.tick();
    if (this.until && !this.chip.hidden) this.clock = setInterval(() => this.tick(), 1000);
  }

  tick() {
    const left = Math.ceil((this.until - Date.now()) / 1000);
    const over = Boolean(this.until) && left <= 0;
    const wasShown = !this.chip.hidden;
    this.chip.hidden = !this.level || this.level === "public" || over;
    if (over) {
      clearInterval(this.clock);
      if (wasShown) this.onExpired();
      return;
    }
    const level = named(this.level);
    this.chip.textContent = this.until ? t("level", { level, left: lasting(left, "short") }) : level;
    this.chip.title = this.until ? t("levelHelp", { level, left: lasting(left) }) : t("levelOpen", { level });
    this.chip.classList.toggle("soon", Boolean(this.until) && left < 60);
  }

  /* Returns whether the owner changed. */
  owned({ owner, name }) {
    const changed = owner !== this.owner;
    this.owner = owner;
    this.name = owner === "human" ? name || this.name || t("person") : "";
    this.banner.hidden = owner !== "human";
    if (owner === "human") this.banner.lastElementChild.textContent = t("answering", { name: capital(this.name) });
    return changed;
  }

  clear() {
    this.access({ level: "public" });
    this.owned({ owner: "bot" });
  }
}

export function capital(text) {
  return text.charAt(0).toLocaleUpperCase() + text.slice(1);
}
