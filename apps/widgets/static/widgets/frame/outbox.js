/* Which of the visitor's messages are not yet acknowledged? Each keeps its client_id until the server has committed it,
   so that sending it twice stores it once. Survives a reload. */

const ACK_WITHIN = 12000;

export class Outbox {
  constructor(memory, line) {
    this.memory = memory;
    this.line = line;
    this.items = memory.get("outbox") || [];
  }

  add(text) {
    const item = { client_id: crypto.randomUUID?.() || `${Date.now()}-${Math.random()}`, text };
    this.items.push(item);
    this.save();
    this.send(item);
    return item;
  }

  send({ text, client_id }) {
    if (!this.line.send({ type: "message", text, client_id })) return;
    clearTimeout(this.overdue);
    this.overdue = setTimeout(() => this.items.length && this.line.reset(), ACK_WITHIN);
  }

  sendAll() {
    this.items.forEach((item) => this.send(item));
  }

  /* The server asked for patience: nothing is lost, everything unacknowledged goes again after the wait. */
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
    this.memory.set("outbox", this.items);
  }
}
