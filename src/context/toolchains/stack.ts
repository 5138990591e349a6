// One stack from two processes: the frames of the worker, then those of the caller, both at the user's
// original file and line, without ours and Node's. Source maps are applied here, in the parent, because the
// worker runs re-created code and has none.

import { isNativeError } from 'node:util/types';
import { defineOwn } from '../../lib/index.js';
import { copyPrefix, isMarkedByPeer } from '../modules/marks.js';
import { runningText } from '../modules/scripts.js';
import { isRelative, isSameFile, originalPlace } from './source-maps.js';

/** The place of a call: an object whose `stack` is made into text only when it is read. */
export interface CallSite {
  readonly stack?: string;
}

/** Frames of files below these folders are ours: as we run, and as source maps name them. */
const ownRoot = new URL('../../', import.meta.url);
const ownSources = new URL(ownRoot.href.replace(/\/dist\/(?:src|bundle)\/$/, '/src/'));
const ownPaths = [ownRoot, ownSources].flatMap((folder) => [
  folder.href,
  decodeURIComponent(folder.pathname),
]);

const { captureStackTrace } = Error;

/** The place that called `below`; costs 1 µs, the text only when it is read. */
export function captureSite(below: (...args: never[]) => unknown): CallSite {
  const site: CallSite = {};
  try {
    captureStackTrace(site, below);
  } catch {
    // A program has removed or replaced it: errors have no frames of the caller.
  }
  return site;
}

/** Empty where an `Error.prepareStackTrace` of the program throws, or returns anything but a text. */
function framesAt(site: CallSite | undefined): string[] {
  try {
    const stack: unknown = site?.stack;
    return typeof stack === 'string' ? splitStack(stack).frames : [];
  } catch {
    return [];
  }
}

/** Own frames between a refusal and the caller of manycore, with room to spare. */
const maxOwnFrames = 50;

/**
 * `error` with the frames of the caller of manycore in place of our own, as many as a stack has room for.
 * Call it where our frames are few. A stack without frames of the user stays as it is.
 */
export function atCaller<E extends Error>(error: E): E {
  const { stackTraceLimit } = Error;
  // Without a limit no error has a stack.
  if (typeof stackTraceLimit !== 'number') return error;
  if (!Reflect.set(Error, 'stackTraceLimit', stackTraceLimit + maxOwnFrames)) return error;
  let frames: string[];
  try {
    frames = framesAt(captureSite(atCaller)).filter(isOfUser);
  } finally {
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  }
  if (frames.length > 0 && stackTraceLimit > 0) setStack(error, frames.slice(0, stackTraceLimit));
  return error;
}

/**
 * Gives `error`, which was made here, the frames of the call at `site` in place of its own, where there are
 * some.
 */
export function placeAt(error: unknown, site: CallSite): void {
  const frames = framesAt(site).filter(isOfUser);
  if (frames.length > 0) setStack(Object(error), frames);
}

function setStack(error: object, frames: readonly string[]): void {
  const stack: unknown = Reflect.get(error, 'stack');
  if (typeof stack !== 'string') return;
  defineOwn(error, 'stack', {
    value: [splitStack(stack, Reflect.get(error, 'message')).head, ...frames].join('\n'),
    writable: true,
    enumerable: false,
    configurable: true,
  });
}

/**
 * Settles a promise by its `resolve` with the result or error of `settle`, which gets the place where the
 * promise is awaited. Recording the caller's stack at every call costs more than a short call. V8 finds it
 * here from the other end: from an async function whose promise leads to the awaiting one. Frames of callers
 * that do not await the promise directly are missing.
 */
export function settleWhereAwaited<T>(
  resolve: (value: PromiseLike<T>) => void,
  settle: (site: CallSite) => T,
): void {
  resolve(settleLater(settle));
}

async function settleLater<T>(settle: (site: CallSite) => T): Promise<T> {
  await undefined; // `resolve` takes one turn to follow this promise,
  await undefined; // and from then on the chain is whole
  return settle(captureSite(settleLater));
}

/**
 * Gives `error` (as it came from a worker) the frames of the call below its own, and cleans the stacks
 * of its causes and parts. Anything but an error with a text stack is left alone. `workerLabel` names
 * the worker: "worker 2".
 */
export function joinStacks(error: unknown, site: CallSite | undefined, workerLabel: string): void {
  const local = framesAt(site).filter(isOfUser);
  clean(error, [`    at [${workerLabel}]`, ...local]);
  const seen = new Set<unknown>([error]);
  for (const each of seen) {
    if (each !== error && isNativeError(each)) clean(each, []);
    for (const part of partsOf(each)) seen.add(part); // a Set is walked to its end as it grows
  }
}

/** The cause of an error, and the parts of an AggregateError. */
function partsOf(error: unknown): unknown[] {
  if (!isNativeError(error)) return [];
  try {
    const errors: unknown = Reflect.get(error, 'errors');
    return [error.cause, ...(Array.isArray(errors) ? errors : [])];
  } catch {
    return []; // a getter of the user's threw
  }
}

/** The frames of users at their original places, then `below`. */
function clean(error: unknown, below: readonly string[]): void {
  if (typeof error !== 'object' || error === null) return;
  try {
    // Not one inherited from `Object.prototype`: any object may have been thrown.
    const stack = isNativeError(error) ? error.stack : ownStack(error);
    if (typeof stack !== 'string') return;
    const { head, frames } = splitStack(stack, Reflect.get(error, 'message'));
    const remote = withoutEnd(frames.filter(isOfUser).map(toOriginal), below.slice(1));
    defineOwn(error, 'stack', {
      value: [head, ...remote, ...below].join('\n'),
      writable: true,
      enumerable: false,
      configurable: true,
    });
  } catch {
    // A frozen error keeps the stack that it has.
  }
}

function ownStack(error: object): unknown {
  return Object.hasOwn(error, 'stack') ? Reflect.get(error, 'stack') : undefined;
}

/** A refusal that was made here has the caller's frames already. */
function withoutEnd(frames: readonly string[], end: readonly string[]): readonly string[] {
  const start = frames.length - end.length;
  const isSame =
    end.length > 0 && start >= 0 && end.every((frame, at) => frames[start + at] === frame);
  return isSame ? frames.slice(0, start) : frames;
}

/**
 * Returns the stack of an error, whose frames are those of the user at their original places; `undefined`: it has
 * none of those.
 */
export function stackOfUser(error: Error): string | undefined {
  const { head, frames } = splitStack(error.stack ?? '', error.message);
  const own = frames.filter(isOfUser).map(toOriginal);
  return own.length === 0 ? undefined : [head, ...own].join('\n');
}

const framePattern = /^\s+at /;

/** `message`: text of the head, which may have lines like frames. */
function splitStack(stack: string, message?: unknown): { head: string; frames: string[] } {
  const found = typeof message === 'string' ? stack.indexOf(message) : -1;
  const isAbove = found >= 0 && !/\n\s+at /.test(stack.slice(0, found));
  const start = isAbove ? found + String(message).length : 0;
  const lines = stack.slice(start).split('\n');
  const first = lines.findIndex((line, at) => (at > 0 || start === 0) && framePattern.test(line));
  if (first < 0) return { head: stack, frames: [] };
  return {
    head: stack.slice(0, start) + lines.slice(0, first).join('\n'),
    frames: lines.slice(first).filter((line) => framePattern.test(line)),
  };
}

function isOfUser(frame: string): boolean {
  if (/[( ]node:/.test(frame)) return false;
  return !ownPaths.some((path) => frame.includes(path));
}

const placePattern = /\(?((?:file:\/\/|\/)[^()]*?):(\d+):(\d+)\)?$/;

/** Longer lines that resemble frames are part of a message; the pattern is quadratic in them. */
const maxFrameLength = 10_000;

/** A stack with marks, with each frame of re-created code at its place in the user's source. */
export function withOriginals(stack: string): string {
  const lines = stack.split('\n');
  return lines.map((line) => (markPattern.test(line) ? toOriginal(line) : line)).join('\n');
}

const markPattern = new RegExp(`^\\s+at .*${copyPrefix}`);

/** The frame with its place in the user's source. */
function toOriginal(frame: string): string {
  const bare = frame.replace(copyPrefix, '');
  const place = bare.length > maxFrameLength ? undefined : placePattern.exec(bare);
  const [, file, line, column] = place ?? [];
  if (file === undefined || line === undefined || column === undefined) return bare;
  const found = originalPlace(file, runningText(file), Number(line) - 1, Number(column) - 1);
  // In a worker the mark stays for the caller, which has the map.
  if (found === undefined) return isMarkedByPeer(file) ? frame : bare;
  // A file that a worker loaded by itself is the user's text, or was mapped there.
  if (bare === frame && isSameFile(found.file, file)) return bare;
  const original = `${isRelative(found.file) ? file : found.file}:${found.line + 1}:${found.column + 1}`;
  return bare.replace(`${file}:${line}:${column}`, () => original);
}
