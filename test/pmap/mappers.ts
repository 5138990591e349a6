// Mappers of tests, for workers. An ordinary module: workers import it.

import { writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
import { spinMs } from '../pool/tasks.js';

/** Ends the worker that calls it as a crash does: at once, and without a word. */
export function crash(): never {
  if (isMainThread) process.kill(process.pid, 'SIGKILL');
  else process.exit(1);
  for (;;);
}

/** Gives `value` after some ms at work. */
export function spinFor<T>(durationMs: number, value: T): T {
  spinMs(durationMs);
  return value;
}

/** Returns true for the first call with this file in any worker; the first caller creates it. */
export function isFirst(file: string): boolean {
  try {
    writeFileSync(file, '', { flag: 'wx' });
    return true;
  } catch {
    return false;
  }
}

export class Point {
  readonly x: number;
  readonly y: number;

  constructor(x: number, y: number) {
    this.x = x;
    this.y = y;
  }

  get sum(): number {
    return this.x + this.y;
  }
}

export class OddError extends RangeError {
  readonly code = 'ODD';
  readonly point: Point;

  constructor(point: Point, options?: ErrorOptions) {
    super(`${point.x} is odd`, options);
    this.name = 'OddError';
    this.point = point;
  }
}

const seen = new Map<string, number>();

/** Counts the calls in this worker with this name, this one included. */
export function countHere(name: string): number {
  const times = (seen.get(name) ?? 0) + 1;
  seen.set(name, times);
  return times;
}

/** A class that counts how often an instance of it is sent, and in the worker how often one came. */
export class Counted {
  readonly name: string;
  sent = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** Number of times that an instance of this name arrived in this thread. */
  get received(): number {
    return seen.get(`received ${this.name}`) ?? 0;
  }

  [Symbol.for('manycore.send')](): string {
    this.sent += 1;
    return this.name;
  }

  static [Symbol.for('manycore.receive')](name: string): Counted {
    countHere(`received ${name}`);
    return new Counted(name);
  }
}
