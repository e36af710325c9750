/* Compiled, never run: what the types allow. */
import { createElement } from "react";
import { SilasChat, loadSilas, silas } from "../src/index.js";

createElement(SilasChat, { host: "https://chat.example.com", deployment: "KEY", identity: async () => null });
createElement(SilasChat, { host: "https://chat.example.com", deployment: "KEY", inline: true, className: "chat" });
// @ts-expect-error a deployment is needed
createElement(SilasChat, { host: "https://chat.example.com" });
silas("open");
void loadSilas("https://chat.example.com");
