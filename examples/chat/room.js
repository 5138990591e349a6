// A room as one instance sees it: its guests here, and the names of all guests wherever they are. Its address
// on the bus is `chat.ROOM`, and instances that have guests in it consume that.
//
// Nobody keeps a list of who is there. Each instance says who is with it: when that changes, when another
// asks, and every few seconds, since one that was killed says nothing any more, and is forgotten then.
import { randomUUID } from 'node:crypto';

/** Names that were not heard for so many beats are forgotten. */
const silentBeats = 3;
/** Guests hear of changed names so long after the first change, with those that came meanwhile, in ms. */
const gatherMs = 100;

export class Room {
  name;
  #bus;
  #address;
  #beatMs;
  /** Instances have the same numbers in every program of a cluster, so each room takes an id. */
  #id = randomUUID();
  #guests = new Set();
  /** What other instances said last, by their ids: `{ names, heardMs }`. */
  #elsewhere = new Map();
  #consumer;
  #beat;
  #gathering;
  #told = '';

  constructor(bus, name, beatMs) {
    this.name = name;
    this.#bus = bus;
    this.#address = `chat.${name}`;
    this.#beatMs = beatMs;
  }

  /** The names that are known now. Throws `BUS_CLOSED` when the unit ends. */
  enter(guest) {
    const isFirst = this.#guests.size === 0;
    if (isFirst) this.#open();
    this.#guests.add(guest);
    this.#told = ''; // this one has heard nothing yet
    this.#sayNames(isFirst);
    return this.#names();
  }

  leave(guest) {
    this.#guests.delete(guest);
    this.#sayNames();
    if (this.#guests.size === 0) this.#close();
  }

  /** To all instances, this one too. False: wait until the bus is drained. Throws `BUS_FULL`. */
  say(name, text) {
    return this.#bus.publish(this.#address, { said: { name, text } });
  }

  #open() {
    this.#consumer = this.#bus.consumer(this.#address, ({ body }) => this.#hear(body));
    this.#beat = setInterval(() => {
      this.#sayNames();
      this.#forgetSilent();
    }, this.#beatMs);
  }

  #close() {
    this.#consumer.close();
    clearInterval(this.#beat);
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    this.#elsewhere.clear();
  }

  #sayNames(asks = false) {
    this.#tellNamesSoon();
    try {
      this.#bus.publish(this.#address, { from: this.#id, names: this.#ownNames(), asks });
    } catch {
      // The bus is full: they are said again in a few seconds.
    }
  }

  #hear({ said, from, names, asks }) {
    if (said !== undefined) {
      this.#tellGuests(JSON.stringify({ said }));
      return;
    }
    if (from === this.#id) return;
    if (names.length === 0) this.#elsewhere.delete(from);
    else this.#elsewhere.set(from, { names, heardMs: performance.now() });
    this.#tellNamesSoon();
    if (asks) this.#sayNames();
  }

  #forgetSilent() {
    const oldestMs = performance.now() - silentBeats * this.#beatMs;
    for (const [id, { heardMs }] of this.#elsewhere) {
      if (heardMs < oldestMs) this.#elsewhere.delete(id);
    }
    this.#tellNamesSoon();
  }

  #ownNames() {
    return [...this.#guests].map(({ name }) => name);
  }

  #names() {
    const others = [...this.#elsewhere.values()].flatMap(({ names }) => names);
    return [...new Set([...this.#ownNames(), ...others])].sort();
  }

  #tellNamesSoon() {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      const text = JSON.stringify({ names: this.#names() });
      if (text !== this.#told) this.#tellGuests(text);
      this.#told = text;
    }, gatherMs);
  }

  #tellGuests(text) {
    for (const guest of this.#guests) guest.tellText(text);
  }
}
