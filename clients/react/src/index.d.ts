import type { HTMLAttributes, ReactElement } from "react";

export type SilasEvent = "ready" | "error" | "opened" | "closed" | "message" | "unread" | "handoff" | "consent";

export interface SilasTheme {
  mode?: "light" | "dark" | "auto";
  accent?: string;
  font?: string;
  position?: "left" | "right";
  launcher?: string;
}

export interface SilasChatProps extends HTMLAttributes<HTMLDivElement> {
  /** The address of your installation, such as `https://chat.example.com`. */
  host: string;
  /** The deployment's public key, from *Install*. */
  deployment: string;
  /** The `integrity` of the loader, from *Install*, if you pin it. */
  integrity?: string;
  /** The chat is where the component is, without a bubble. */
  inline?: boolean;
  language?: string;
  theme?: "light" | "dark" | SilasTheme;
  open?: boolean;
  /** A token that your server signed, or a function that asks your server for a fresh one; null for nobody. */
  identity?: string | null | (() => Promise<string | null> | string | null);
  /** What the page says of its visitor; it proves nothing. */
  attributes?: Record<string, string>;
  onEvent?: (name: SilasEvent, detail: unknown) => void;
}

export function SilasChat(props: SilasChatProps): ReactElement | null;
/** Adds the loader of `host` to the page, once. */
export function loadSilas(host: string, options?: { integrity?: string }): Promise<void>;
/** Calls a function of `window.Silas` (`open`, `close`, `shutdown`, …); queued until the loader has run. */
export function silas(name: string, ...parts: unknown[]): void;
