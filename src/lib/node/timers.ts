// Timers and the clock as they were when this library was loaded. Test frameworks replace the global ones
// (and the clock) with fakes that nobody advances: waits of ours on another process would never end. Where fakes
// were there first, timers are made of Node's class.

import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import timers from 'node:timers';

type Timers = Pick<
  typeof timers,
  | 'setTimeout'
  | 'clearTimeout'
  | 'setInterval'
  | 'clearInterval'
  | 'setImmediate'
  | 'clearImmediate'
>;

/** True: `timers` has fakes, which were there before this was loaded. Only Node's own timers have a class. */
function hasFakes(): boolean {
  const timer: unknown = timers.setTimeout(() => {}, 0);
  timers.clearTimeout(Object(timer));
  return Object(timer).constructor?.name !== 'Timeout';
}

/**
 * Timers of Node's class without Node's functions: sockets have one. `setImmediate` is a timer of 1 ms then.
 * `undefined`: no socket shows it.
 */
function timersOfClass(): Timers | undefined {
  const { Socket: SocketClass } = createRequire(import.meta.url)('node:net');
  const socket: Socket = new SocketClass();
  socket.setTimeout(1_000);
  const timer = Object.getOwnPropertySymbols(socket)
    .map((key): unknown => Reflect.get(socket, key))
    .find((each) => Object(each).constructor?.name === 'Timeout');
  if (timer === undefined) return undefined;
  const end = (each: unknown): void => Object(each).close?.();
  end(timer);
  const Timeout = Object(timer).constructor;
  const begin = (body: unknown, ms: unknown, args: unknown[], isRepeat: boolean) => {
    const isInRange = typeof ms === 'number' && ms >= 1 && ms <= maxTimerMs;
    const values = [body, isInRange ? Math.trunc(ms) : 1, args, isRepeat, true];
    return Object(Reflect.construct(Timeout, values)).refresh();
  };
  const own: object = {
    setTimeout: (body: unknown, ms: unknown, ...args: unknown[]) => begin(body, ms, args, false),
    setInterval: (body: unknown, ms: unknown, ...args: unknown[]) => begin(body, ms, args, true),
    setImmediate: (body: unknown, ...args: unknown[]) => begin(body, 1, args, false),
    clearTimeout: end,
    clearInterval: end,
    clearImmediate: end,
  };
  return { ...timers, ...own };
}

/** Longer timers of Node fire at once. */
const maxTimerMs = 2 ** 31 - 1;

const areFake = hasFakes();

export const {
  setTimeout,
  clearTimeout,
  setInterval,
  clearInterval,
  setImmediate,
  clearImmediate,
}: Timers = (areFake ? timersOfClass() : undefined) ?? timers;

/** A fake of `process.nextTick` runs nothing: a turn of the promises comes as soon. */
export const nextTick: typeof process.nextTick = areFake
  ? (body, ...args) => void Promise.resolve().then(() => body(...args))
  : process.nextTick.bind(process);

/** The method of the class: a fake is a property of the object. */
const { now } = Object.getPrototypeOf(performance);

/** `performance.now()`, in ms. */
export const nowMs: () => number = (typeof now === 'function' ? now : performance.now).bind(
  performance,
);
