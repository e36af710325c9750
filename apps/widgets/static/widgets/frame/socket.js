/* The WebSocket to the platform: authenticates, catches up by seq and reconnects with backoff. Knows frames only as JSON with
   a type. */

const READY_WITHIN = 10000;
const LONGEST_WAIT = 30000;

/* Close codes after which reconnecting is useless (contract interfaces, widget socket). */
const FINAL = { 4003: "refused", 4008: "refused", 4009: "replaced" };

export class Socket {
  constructor(session, { after, onFrame, onState }) {
    Object.assign(this, { session, after, onFrame, onState });
    this.state = "closed";
    this.attempts = 0;
    addEventListener("online", () => this.wanted && this.state !== "ready" && this.retry(0));
    addEventListener("offline", () => this.wanted && this.reconnect());
  }

  open() {
    if (this.wanted) return;
    this.wanted = true;
    this.attempts = 0;
    this.connect();
  }

  close() {
    this.wanted = false;
    clearTimeout(this.timer);
    this.disconnect();
    this.setState("closed");
  }

  /* Reconnects now: after a new identity, or when an acknowledgement is overdue. */
  reset() {
    if (!this.wanted) return;
    this.disconnect();
    this.retry(0);
  }

  send(frame) {
    if (this.state !== "ready") return false;
    this.webSocket.send(JSON.stringify(frame));
    return true;
  }

  async connect() {
    this.setState(this.attempts > 1 ? "offline" : "connecting");
    let session;
    try {
      session = await this.session.current();
    } catch (refusal) {
      if (refusal.final) this.stop("refused", refusal);
      else this.retry(refusal.retryAfter * 1000 || undefined);
      return;
    }
    if (!this.wanted) return;
    this.disconnect();
    const webSocket = new WebSocket(`${location.protocol.replace("http", "ws")}//${location.host}${session.path}`);
    this.webSocket = webSocket;
    this.overdue = setTimeout(() => this.reconnect(), READY_WITHIN);
    webSocket.onopen = () => webSocket.send(JSON.stringify({ type: "auth", token: session.token, after_seq: this.after(session.id) }));
    webSocket.onmessage = ({ data }) => this.webSocket === webSocket && this.receive(data);
    webSocket.onclose = ({ code }) => this.webSocket === webSocket && this.onClose(code);
  }

  receive(data) {
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      return;
    }
    if (typeof frame?.type !== "string") return;
    if (frame.type === "ready") {
      clearTimeout(this.overdue);
      this.attempts = 0;
      this.setState("ready");
    }
    this.onFrame(frame);
  }

  onClose(code) {
    this.disconnect();
    if (!this.wanted) return;
    if (FINAL[code]) {
      this.stop(FINAL[code], { code: String(code) });
      return;
    }
    if (code === 4001) this.session.expire();
    this.retry();
  }

  reconnect() {
    this.disconnect();
    this.retry();
  }

  disconnect() {
    clearTimeout(this.overdue);
    const webSocket = this.webSocket;
    this.webSocket = null;
    if (webSocket) webSocket.close();
  }

  stop(state, refusal) {
    this.wanted = false;
    this.setState(state, refusal);
  }

  retry(wait = Math.min(LONGEST_WAIT, 500 * 2 ** this.attempts) * (0.75 + Math.random() / 2)) {
    clearTimeout(this.timer);
    this.attempts += 1;
    this.setState(this.attempts > 1 || !navigator.onLine ? "offline" : "connecting");
    this.timer = setTimeout(() => this.connect(), wait);
  }

  setState(state, detail) {
    if (state === this.state) return;
    this.state = state;
    this.onState(state, detail);
  }
}
