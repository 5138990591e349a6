// Classes that are here already and are closed (frozen, or with a non-configurable key) to an update of a
// payload. Such a class cannot take the update over, and is made anew.
// Not here: making it (decode.ts), versions (versions.ts).

import { descriptorOf } from '../../lib/index.js';
import { listAt, numberAt, type Payload, propertyFlags, special } from '../protocol.js';
import type { AnyFunction } from '../types.js';
import { memberIn } from './pristine.js';

export class ClosedClasses {
  readonly #payload: Payload;
  /** The values made for the specials of the payload. */
  readonly #values: readonly unknown[];
  /** Specials for members by the cell and index where they go; made at first use. */
  #members: Map<unknown, Map<unknown, readonly unknown[]>> | undefined;
  /** Positions of properties by class; made at first use. */
  #places: Map<number, [at: number, isOfPrototype: boolean][]> | undefined;

  constructor(payload: Payload, values: readonly unknown[]) {
    this.#payload = payload;
    this.#values = values;
  }

  /** True: a property of a class that is here has changed, and cannot be defined again. */
  has(index: number, known: AnyFunction, version: number): boolean {
    const { properties, maxElements } = this.#payload;
    for (const [at, isOfPrototype] of this.#propertiesOf(index)) {
      if (numberAt(properties, at + 4) <= version) continue;
      if (numberAt(properties, at + 2) === propertyFlags.order) continue; // it was as open at home
      const name = properties[at + 1];
      const key = typeof name === 'number' ? this.#values[name] : name;
      if (typeof key !== 'string' && typeof key !== 'symbol') continue;
      const holder: unknown = isOfPrototype ? known.prototype : known;
      if ((typeof holder !== 'object' && typeof holder !== 'function') || holder === null) continue;
      const cell = listAt(properties, at + 3, maxElements);
      if (!isOpenTo(holder, key, this.#withMembers(cell, index, known))) return true;
    }
    return false;
  }

  /** The parts of `cell`, with the functions that the text of the class itself makes: they are here. */
  #withMembers(cell: readonly unknown[], index: number, known: AnyFunction): readonly unknown[] {
    const { puts, specials } = this.#payload;
    if (this.#members === undefined) {
      this.#members = new Map();
      for (let at = 0; at < puts.length; at += 3) {
        const entry = specials[numberAt(puts, at + 2)] ?? [];
        if (entry[0] !== special.member) continue;
        const parts = this.#members.get(puts[at]) ?? new Map<unknown, readonly unknown[]>();
        this.#members.set(puts[at], parts.set(puts[at + 1], entry));
      }
    }
    const parts = this.#members.get(cell);
    if (parts === undefined) return cell;
    return cell.map((part, at) => {
      const entry = parts.get(at);
      return entry?.[1] === index ? memberIn(known, entry) : part;
    });
  }

  /** Positions of the properties of a class and of its prototype. */
  #propertiesOf(index: number): readonly (readonly [at: number, isOfPrototype: boolean])[] {
    if (this.#places === undefined) {
      this.#places = new Map();
      const { properties } = this.#payload;
      for (let at = 0; at < properties.length; at += 5) {
        const target = properties[at];
        if (typeof target !== 'number') continue;
        const entry = this.#payload.specials[target] ?? [];
        const isOfPrototype = entry[0] === special.prototype;
        const owner = isOfPrototype ? numberAt(entry, 1) : target;
        const places = this.#places.get(owner) ?? [];
        places.push([at, isOfPrototype]);
        this.#places.set(owner, places);
      }
    }
    return this.#places.get(index) ?? [];
  }
}

/** True: `key` can be set to the parts of `cell`, or has them already. */
function isOpenTo(holder: object, key: string | symbol, cell: readonly unknown[]): boolean {
  const own = descriptorOf(holder, key);
  if (own === undefined) return Object.isExtensible(holder);
  if (own.configurable === true || own.writable === true) return true;
  return 'value' in own
    ? Object.is(own.value, cell[0])
    : Object.is(own.get, cell[0]) && Object.is(own.set, cell[1]);
}
