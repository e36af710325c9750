/* Is there a live line to the platform? One socket: authenticates first, catches up by seq, comes back by itself.
   Knows frames only as JSON with a type; what they mean is decided elsewhere. */

const READY_WITHIN = 10000;
const LONGEST_WAIT = 30000;

/* Close codes that reconnecting cannot mend (contract interfaces, widget socket). */
const FINAL = { 4003: "refused", 4008: "refused", 4009: "replaced" };

export class Line {
  constructor(session, { after, onFrame, onState }) {
    Object.assign(this, { session, after, onFrame, onState });
    this.state = "closed";
    this.tries = 0;
    addEventListener("online", () => this.wanted && this.state !== "ready" && this.again(0));
    addEventListener("offline", () => this.wanted && this.drop());
  }

  open() {
    if (this.wanted) return;
    this.wanted = true;
    this.tries = 0;
    this.connect();
  }

  close() {
    this.wanted = false;
    clearTimeout(this.timer);
    this.leave();
    this.tell("closed");
  }

  /* Try the line anew, now: after a new identity, or when an answer is overdue. */
  reset() {
    if (!this.wanted) return;
    this.leave();
    this.again(0);
  }

  send(frame) {
    if (this.state !== "ready") return false;
    this.socket.send(JSON.stringify(frame));
    return true;
  }

  async connect() {
    this.tell(this.tries > 1 ? "offline" : "connecting");
    let session;
    try {
      session = await this.session.current();
    } catch (refusal) {
      if (refusal.final) this.stop("refused", refusal);
      else this.again(refusal.retryAfter * 1000 || undefined);
      return;
    }
    if (!this.wanted) return;
    this.leave();
    const socket = new WebSocket(`${location.protocol.replace("http", "ws")}//${location.host}${session.path}`);
    this.socket = socket;
    this.overdue = setTimeout(() => this.drop(), READY_WITHIN);
    socket.onopen = () => socket.send(JSON.stringify({ type: "auth", token: session.token, after_seq: this.after(session.id) }));
    socket.onmessage = ({ data }) => this.socket === socket && this.hear(data);
    socket.onclose = ({ code }) => this.socket === socket && this.lost(code);
  }

  hear(data) {
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      return;
    }
    if (typeof frame?.type !== "string") return;
    if (frame.type === "ready") {
      clearTimeout(this.overdue);
      this.tries = 0;
      this.tell("ready");
    }
    this.onFrame(frame);
  }

  lost(code) {
    this.leave();
    if (!this.wanted) return;
    if (FINAL[code]) {
      this.stop(FINAL[code], { code: String(code) });
      return;
    }
    if (code === 4001) this.session.expire();
    this.again();
  }

  drop() {
    this.leave();
    this.again();
  }

  leave() {
    clearTimeout(this.overdue);
    const socket = this.socket;
    this.socket = null;
    if (socket) socket.close();
  }

  stop(state, refusal) {
    this.wanted = false;
    this.tell(state, refusal);
  }

  again(wait = Math.min(LONGEST_WAIT, 500 * 2 ** this.tries) * (0.75 + Math.random() / 2)) {
    clearTimeout(this.timer);
    this.tries += 1;
    this.tell(this.tries > 1 || !navigator.onLine ? "offline" : "connecting");
    this.timer = setTimeout(() => this.connect(), wait);
  }

  tell(state, detail) {
    if (state === this.state) return;
    this.state = state;
    this.onState(state, detail);
  }
}
