// The limit of notices to members whose messages are refused for their time. Anybody may send recorded
// messages again, and every one of them would cause a notice.

const perMs = 1000;
const maxNotices = 100;

export class NoticeLimit {
  #from = 0;
  #count = 0;

  /** Returns false when as many notices were sent within the last second as may be. */
  take(): boolean {
    const now = Date.now();
    if (Math.abs(now - this.#from) >= perMs) {
      this.#from = now;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count <= maxNotices;
  }
}
