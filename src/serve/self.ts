// The loop that runs a program, as the program sees it: `self`, `onlyOne` for work that exactly one loop of a
// server does, and `readiness`. The loop is found on the global object: the command and the program may have different copies of
// manycore, so names and types there stay.
// Not here: which loop it is (supervisor/leadership.ts), and when its functions end (loop/candidate.ts).

import { defineOwn, invalid } from '../lib/index.js';
import { isInsideWorker } from '../worker/index.js';

/** The event loop of a server that runs this code. Outside of a server each is `undefined`. */
export interface Self {
  /** Number of the process, as in `manycore status`. Used again after the process has ended. */
  readonly process: number | undefined;
  /** Number of the event loop in its process, from 0 on. */
  readonly loop: number | undefined;
  /**
   * Number of the loop among all loops of the server, from 0 on; also in the environment variable
   * `NODE_APP_INSTANCE`. A replacement has the number of the loop that it replaces, which may still drain.
   */
  readonly instance: number | undefined;
  /** Name of the app, as in `manycore list`. */
  readonly name: string | undefined;
  /** Number of reloads of the server before this process was started. */
  readonly generation: number | undefined;
}

/** Work for one loop of a server. The signal aborts when another loop is to take it over. */
export type OnlyOneFunction = (signal: AbortSignal) => unknown;

/** A check of the program: false, and an error, say that it is not ready for clients. */
export type ReadinessCheck = () => boolean | Promise<boolean>;

/** The loop that runs the program, for all copies of manycore in its thread. */
export interface LoopFacade extends Readonly<Record<keyof Self, unknown>> {
  /** Number of the loop in the scoreboard, across all processes. */
  readonly row: number;
  onlyOne(fn: OnlyOneFunction): void;
  readiness(check: ReadinessCheck): void;
}

const name = Symbol.for('manycore.loop');

/** Sets the loop of this thread. */
export function setSelf(facade: LoopFacade): void {
  defineOwn(globalThis, name, { value: facade, configurable: true });
}

function facade(): Partial<LoopFacade> {
  return Object(Reflect.get(globalThis, name));
}

function numberIn(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

export const self: Self = Object.freeze({
  get process() {
    return numberIn(facade().process);
  },
  get loop() {
    return numberIn(facade().loop);
  },
  get instance() {
    return numberIn(facade().instance);
  },
  get name() {
    const { name } = facade();
    return typeof name === 'string' ? name : undefined;
  },
  get generation() {
    return numberIn(facade().generation);
  },
});

/**
 * Runs `fn` in exactly one event loop of the server, once that serves, and in another one when this one ends. Each
 * loop calls it; all functions run in the same loop. When that loop is to end, the signal aborts. The next loop
 * begins once the promises that functions have returned are settled, or once the loop has ended. An error of
 * `fn` is an uncaught exception. Outside of a server `fn` just runs; in workers of manycore it does not.
 * Throws `OPTION_INVALID`.
 */
export function onlyOne(fn: OnlyOneFunction): void {
  if (typeof fn !== 'function') throw invalid('the argument of onlyOne', fn, 'a function');
  const { onlyOne: runInOne } = facade();
  if (typeof runInOne === 'function') runInOne(fn);
  else if (!isInsideWorker()) void runUntil(new AbortController().signal, fn);
}

/**
 * Lets the program say whether it is ready for clients: `check` is called in this loop, once a second. While it returns
 * false, throws, or has not answered for 5 s, `/readyz` of the server (option `health`) answers 503, with the
 * message of the error. Clients that connect nevertheless are served. Outside of a server it does nothing.
 * Throws `OPTION_INVALID`.
 */
export function readiness(check: ReadinessCheck): void {
  if (typeof check !== 'function') throw invalid('the argument of readiness', check, 'a function');
  const { readiness: add } = facade();
  if (typeof add === 'function') add(check);
}

/**
 * Returns an id that no other call returns and that leads to this loop: under `sticky: { query }` and the like, each
 * connection whose first request has it goes to this loop while that lives. Outside of a server it is just an id.
 */
export function stickyId(): string {
  const { row } = facade();
  const id = crypto.randomUUID();
  return typeof row === 'number' ? `mc${row}-${id}` : id;
}

/** Returns the number of the row that `stickyId` has put into an id. */
export function rowOfStickyId(id: string): number | undefined {
  const [, row] = /^mc(\d{1,9})-/.exec(id) ?? [];
  return row === undefined ? undefined : Number(row);
}

/** Runs `fn` in a tick of its own; resolves when it has settled. Errors are uncaught exceptions. */
export async function runUntil(signal: AbortSignal, fn: OnlyOneFunction): Promise<void> {
  try {
    await Promise.resolve();
    await fn(signal);
  } catch (error) {
    if (signal.aborted && isAbort(error, signal)) return;
    process.nextTick(() => {
      throw error;
    });
  }
}

/** True: `error` is what Node's functions reject with once `signal` has aborted. */
function isAbort(error: unknown, { reason }: AbortSignal): boolean {
  return error === reason || (error instanceof Error && error.name === 'AbortError');
}
