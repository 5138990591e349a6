// Buses that are peers over paths that are each slow in their own way, and sent messages by sender.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { EventBus } from '../../src/bus/index.js';
import type { Attached, Peer } from '../../src/bus/transports/transport.js';

/** Calls pushed functions in order, all that are queued after as many turns as `pause` returns. */
export class SlowPath {
  readonly #works: (() => void)[] = [];
  readonly #pause: () => number;
  #isRunning = false;
  isStopped = false;
  isEnded = false;

  constructor(pause: () => number) {
    this.#pause = pause;
  }

  push(work: () => void): void {
    if (this.isEnded) return;
    this.#works.push(work);
    if (!this.#isRunning) this.#run(this.#pause());
  }

  #run(turns: number): void {
    this.#isRunning = true;
    setImmediate(() => {
      if (this.isEnded) return;
      if (turns > 0 || this.isStopped) {
        this.#run(Math.max(0, turns - 1));
        return;
      }
      for (const work of this.#works.splice(0)) work();
      this.#isRunning = this.#works.length > 0;
      if (this.#isRunning) this.#run(this.#pause());
    });
  }
}

function peerOver(path: SlowPath, attached: () => Attached): Peer {
  return {
    hasRoom: true,
    announce: (address, consumers) => path.push(() => attached().interest(address, consumers)),
    note: (note) => path.push(() => attached().noted(note)),
    deliver: (delivery) => {
      const body = structuredClone(delivery.body);
      path.push(() => attached().receive({ ...delivery, body }));
    },
  };
}

export class Net {
  readonly buses: EventBus[] = [];
  readonly #t: TestContext;
  readonly #pause: () => number;
  readonly #paths = new Map<string, SlowPath>();
  readonly #ends = new Map<string, Attached>();

  constructor(t: TestContext, pause: () => number) {
    this.#t = t;
    this.#pause = pause;
    t.after(() => {
      for (const path of this.#paths.values()) path.isEnded = true; // one that is stopped has no end
    });
  }

  /** Adds `count` buses, each the peer of all others. */
  async addAll(count: number): Promise<void> {
    for (let at = 0; at < count; at += 1) this.add();
    await turns(30);
  }

  add(): EventBus {
    const bus = new EventBus({ copy: structuredClone });
    this.#t.after(() => bus.close());
    const at = this.buses.push(bus) - 1;
    for (let other = 0; other < at; other += 1) this.#join(at, other);
    return bus;
  }

  #join(a: number, b: number): void {
    const [busA, busB] = [this.buses[a], this.buses[b]];
    assert.ok(busA && busB);
    const [there, back] = [new SlowPath(this.#pause), new SlowPath(this.#pause)];
    this.#paths.set(`${a}>${b}`, there).set(`${b}>${a}`, back);
    const atA: Attached = busA.attach(peerOver(there, () => atB));
    const atB: Attached = busB.attach(peerOver(back, () => atA));
    this.#ends.set(`${a}-${b}`, atA).set(`${b}-${a}`, atB);
  }

  path(from: number, to: number): SlowPath {
    const path = this.#paths.get(`${from}>${to}`);
    assert.ok(path);
    return path;
  }

  /** Ends a bus at once, with what is on its way. */
  kill(gone: number): void {
    for (let other = 0; other < this.buses.length; other += 1) {
      if (other === gone) continue;
      this.path(gone, other).isEnded = true;
      this.path(other, gone).isEnded = true;
      this.#ends.get(`${other}-${gone}`)?.ended();
    }
  }
}

/** A sent message: each sender counts. */
export interface Numbered {
  readonly by: string;
  readonly number: number;
}

export function byOf(seen: readonly Numbered[]): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const { by, number } of seen) found.set(by, [...(found.get(by) ?? []), number]);
  return found;
}

export function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, at) => at);
}

/** Waits for `count` turns. */
export async function turns(count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) await new Promise((resolve) => setImmediate(resolve));
}
