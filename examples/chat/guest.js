// One connection and the guest behind it. A browser that reads too slowly is disconnected, since its unsent
// messages take memory from everybody. One that writes faster than the bus carries is not read for a while.

export class Guest {
  /** The name that others see; `undefined` before the guest enters a room, as is `room`. */
  name;
  room;
  #socket;
  #maxBehindBytes;
  #isThere = true;

  constructor(socket, maxBehindBytes) {
    this.#socket = socket;
    this.#maxBehindBytes = maxBehindBytes;
    socket.on('pong', () => {
      this.#isThere = true;
    });
  }

  send(value) {
    this.sendText(JSON.stringify(value));
  }

  /** Like `send`, with a text already in JSON, made once for many guests. */
  sendText(text) {
    if (this.#socket.bufferedAmount > this.#maxBehindBytes) this.#socket.terminate();
    else this.#socket.send(text, () => {}); // the guest may have disconnected
  }

  /** Reads nothing more until the promise settles. */
  waitFor(promise) {
    this.#socket.pause();
    const resume = () => {
      this.#isThere = true; // an answer that came meanwhile is yet to be read
      this.#socket.resume();
    };
    promise.then(resume, resume);
  }

  /** Ends the connection when the last time was not answered. */
  probe() {
    if (this.#socket.isPaused) return; // its answer would not be read
    if (!this.#isThere) this.#socket.terminate();
    this.#isThere = false;
    this.#socket.ping(() => {});
  }

  /** Closes the connection after the messages sent so far. */
  close(code, why) {
    this.#socket.close(code, why);
  }
}
