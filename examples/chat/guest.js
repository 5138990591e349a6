// One connection, and who is at its other end. A browser that reads too slowly is dropped, since what waits
// for it is memory of everybody; one that writes faster than the bus carries is not read for a while.

export class Guest {
  /** What others see; `undefined` until a room is entered, as the room. */
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

  tell(value) {
    this.tellText(JSON.stringify(value));
  }

  /** As `tell`, of what was made JSON once for many guests. */
  tellText(text) {
    if (this.#socket.bufferedAmount > this.#maxBehindBytes) this.#socket.terminate();
    else this.#socket.send(text, () => {}); // who has gone hears nothing
  }

  /** Reads nothing more until then. */
  waitFor(promise) {
    this.#socket.pause();
    const resume = () => {
      this.#isThere = true; // what it answered meanwhile is yet to be read
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

  /** What was sent before still arrives. */
  close(code, why) {
    this.#socket.close(code, why);
  }
}
