// A room in one instance: its guests here, and the names of the guests of all instances. Its address on the
// bus is `chat.ROOM`, and instances with guests in it consume that address.
//
// There is no central list of guests. Each instance publishes the names of its own guests: after a change, on
// request of another instance, and every few seconds. The names of a killed instance expire.
import { randomUUID } from 'node:crypto';

/** Names expire after this many beats without a message. */
const silentBeats = 3;
/** Delay from the first change of names to the message for guests, which includes later changes, in ms. */
const gatherMs = 100;

export class Room {
  name;
  #bus;
  #address;
  #beatMs;
  /** Instances have the same numbers in every program of a cluster, so each room takes an id. */
  #id = randomUUID();
  #guests = new Set();
  /** Last message of each other instance, by its id: `{ names, receivedMs }`. */
  #others = new Map();
  #consumer;
  #beat;
  #sending;
  #lastSent = '';

  constructor(bus, name, beatMs) {
    this.name = name;
    this.#bus = bus;
    this.#address = `chat.${name}`;
    this.#beatMs = beatMs;
  }

  /** Returns the names of all guests so far. Throws `BUS_CLOSED` when the unit ends. */
  enter(guest) {
    const isFirst = this.#guests.size === 0;
    if (isFirst) this.#open();
    this.#guests.add(guest);
    this.#lastSent = ''; // the new guest has received no names yet
    this.#publishNames(isFirst);
    return this.#names();
  }

  leave(guest) {
    this.#guests.delete(guest);
    this.#publishNames();
    if (this.#guests.size === 0) this.#close();
  }

  /** Publishes to all instances, this one too. False: wait until the bus is drained. Throws `BUS_FULL`. */
  say(name, text) {
    return this.#bus.publish(this.#address, { said: { name, text } });
  }

  #open() {
    this.#consumer = this.#bus.consumer(this.#address, ({ body }) => this.#receive(body));
    this.#beat = setInterval(() => {
      this.#publishNames();
      this.#forgetSilent();
    }, this.#beatMs);
  }

  #close() {
    this.#consumer.close();
    clearInterval(this.#beat);
    clearTimeout(this.#sending);
    this.#sending = undefined;
    this.#others.clear();
  }

  #publishNames(asks = false) {
    this.#sendNamesSoon();
    try {
      this.#bus.publish(this.#address, { from: this.#id, names: this.#ownNames(), asks });
    } catch {
      // The bus is full: the next beat publishes the names again.
    }
  }

  #receive({ said, from, names, asks }) {
    if (said !== undefined) {
      this.#sendToGuests(JSON.stringify({ said }));
      return;
    }
    if (from === this.#id) return;
    if (names.length === 0) this.#others.delete(from);
    else this.#others.set(from, { names, receivedMs: performance.now() });
    this.#sendNamesSoon();
    if (asks) this.#publishNames();
  }

  #forgetSilent() {
    const oldestMs = performance.now() - silentBeats * this.#beatMs;
    for (const [id, { receivedMs }] of this.#others) {
      if (receivedMs < oldestMs) this.#others.delete(id);
    }
    this.#sendNamesSoon();
  }

  #ownNames() {
    return [...this.#guests].map(({ name }) => name);
  }

  #names() {
    const others = [...this.#others.values()].flatMap(({ names }) => names);
    return [...new Set([...this.#ownNames(), ...others])].sort();
  }

  #sendNamesSoon() {
    this.#sending ??= setTimeout(() => {
      this.#sending = undefined;
      const text = JSON.stringify({ names: this.#names() });
      if (text !== this.#lastSent) this.#sendToGuests(text);
      this.#lastSent = text;
    }, gatherMs);
  }

  #sendToGuests(text) {
    for (const guest of this.#guests) guest.sendText(text);
  }
}
