// Tasks of tests, for workers. An ordinary module: tasks import it where they run.

import { AsyncLocalStorage } from 'node:async_hooks';
import { existsSync, writeFileSync } from 'node:fs';
import { propagate } from '../../src/public.js';

/** Holds its worker in a loop until `file` is there. Returns `value`. */
export function blockUntil<T>(file: string, mark: string, value: T): T {
  writeFileSync(mark, '');
  while (!existsSync(file)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
  return value;
}

/** Computes for at least so long. */
export function spinMs(durationMs: number): number {
  const end = performance.now() + durationMs;
  let rounds = 0;
  while (performance.now() < end) rounds += 1;
  return rounds;
}

export function add(a: number, b: number): number {
  return a + b;
}

export class Temperature {
  readonly celsius: number;

  constructor(celsius: number) {
    this.celsius = celsius;
  }

  get fahrenheit(): number {
    return this.celsius * 1.8 + 32;
  }
}

export class TooHotError extends RangeError {
  readonly code = 'TOO_HOT';
  readonly temperature: Temperature;

  constructor(temperature: Temperature, options?: ErrorOptions) {
    super(`${temperature.celsius} degrees`, options);
    this.name = 'TooHotError';
    this.temperature = temperature;
  }
}

let calls = 0;

/** Returns the number of earlier calls in this worker. */
export function countCalls(): number {
  calls += 1;
  return calls - 1;
}

let running = 0;
let mostRunning = 0;

/** Stays for some rounds of the event loop, and until so many have been here; returns how many were here at a time, at most. */
export async function crowd(atLeast = 1): Promise<number> {
  running += 1;
  mostRunning = Math.max(mostRunning, running);
  while (mostRunning < atLeast) await new Promise((resolve) => setImmediate(resolve));
  for (let round = 0; round < 5; round += 1) await new Promise((resolve) => setImmediate(resolve));
  running -= 1;
  return mostRunning;
}

export const tenants = propagate(new AsyncLocalStorage<string>(), 'tenants of the tests');

export function currentTenant(): string | undefined {
  return tenants.getStore();
}
