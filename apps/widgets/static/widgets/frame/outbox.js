/* The visitor's messages that are not acknowledged yet. Each keeps its client_id until the server has committed it, so that
   sending it twice stores it once. Survives a reload. */

const ACK_WITHIN = 12000;

export class Outbox {
  constructor(storage, socket) {
    this.storage = storage;
    this.socket = socket;
    this.items = storage.get("outbox") || [];
  }

  /* `answers`: the proactive message that this one answers, if it does. */
  add(text, answers) {
    const item = { client_id: crypto.randomUUID?.() || `${Date.now()}-${Math.random()}`, text, ...(answers ? { answers } : {}) };
    this.items.push(item);
    this.save();
    this.send(item);
    return item;
  }

  send({ text, client_id, answers }) {
    if (!this.socket.send({ type: "message", text, client_id, proactive_message: answers })) return;
    clearTimeout(this.overdue);
    this.overdue = setTimeout(() => this.items.length && this.socket.reset(), ACK_WITHIN);
  }

  sendAll() {
    this.items.forEach((item) => this.send(item));
  }

  /* Resends everything that is not acknowledged after the wait that the server asked for. */
  sendAfter(seconds) {
    clearTimeout(this.overdue);
    clearTimeout(this.later);
    this.later = setTimeout(() => this.sendAll(), seconds * 1000);
  }

  settle(client_id) {
    this.items = this.items.filter((item) => item.client_id !== client_id);
    if (!this.items.length) clearTimeout(this.overdue);
    this.save();
  }

  clear() {
    clearTimeout(this.later);
    clearTimeout(this.overdue);
    this.items = [];
    this.save();
  }

  save() {
    this.storage.set("outbox", this.items);
  }
}
