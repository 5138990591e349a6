// What cannot travel, and what to do instead: one table, used for captures, arguments and results.
// A refusal is thrown before anything is sent. Not here: hazards of variables (functions.ts).

import * as types from 'node:util/types';
import { CodedError, type ErrorCode } from '../errors.js';

interface Refusal {
  /** "a Promise" */
  readonly what: string;
  /** Why, and the way out. */
  readonly why: string;
}

const liveHere = 'open it inside the function, or keep one per host with perHost(() => …)';

const byConstructor: Readonly<Record<string, string>> = {
  Socket: 'a network connection lives in this process',
  TLSSocket: 'a network connection lives in this process',
  Server: 'a listening server lives in this process',
  FileHandle: 'an open file lives in this process',
  ChildProcess: 'a child process belongs to the process that started it',
  Worker: 'a worker belongs to the thread that started it',
  MessagePort: 'a port lives in this thread',
  ReadStream: 'an open file lives in this process',
  WriteStream: 'an open file lives in this process',
  Readable: 'a stream is read in this process',
  Writable: 'a stream is written in this process',
  Duplex: 'a stream lives in this process',
  Transform: 'a stream lives in this process',
  ReadableStream: 'a stream is read in this process',
  WritableStream: 'a stream is written in this process',
};

/** Why `value` itself cannot travel, whatever it holds; `undefined`: it may. */
export function refusalOf(value: object): Refusal | undefined {
  if (types.isProxy(value)) {
    return { what: 'a Proxy', why: 'its handler is code of this process; pass the object behind it' };
  }
  if (types.isPromise(value)) {
    return { what: 'a Promise', why: 'await it first, or make it inside the function' };
  }
  if (types.isWeakMap(value) || types.isWeakSet(value) || value instanceof WeakRef) {
    return {
      what: `a ${nameOf(value)}`,
      why: 'what it refers to cannot be listed; use a Map or Set, or make it inside the function',
    };
  }
  if (types.isExternal(value)) {
    return { what: 'an External', why: 'it is memory of a native module; load that module inside' };
  }
  if (types.isGeneratorObject(value)) {
    return {
      what: 'a running generator',
      why: 'its position cannot be copied; pass the generator function, or [...it]',
    };
  }
  if (types.isMapIterator(value) || types.isSetIterator(value) || isIterator(value)) {
    return { what: 'an iterator', why: 'its position cannot be copied; pass an array: [...it]' };
  }
  if (types.isSharedArrayBuffer(value) || isSharedView(value)) {
    return {
      what: 'a SharedArrayBuffer',
      why: 'a copy would no longer be shared; allocate it with shared(bytes), or pass a copy',
    };
  }
  return refusalByClass(value);
}

function isSharedView(value: object): boolean {
  return ArrayBuffer.isView(value) && types.isSharedArrayBuffer(value.buffer);
}

function isIterator(value: object): boolean {
  return /^\[object (?:Array|String|RegExp String|Segmenter String) Iterator\]$/.test(
    Object.prototype.toString.call(value),
  );
}

function refusalByClass(value: object): Refusal | undefined {
  for (let at: unknown = value; typeof at === 'object' && at !== null; ) {
    const constructor: unknown = Object.getOwnPropertyDescriptor(at, 'constructor')?.value;
    const name = typeof constructor === 'function' ? constructor.name : '';
    const why = Object.hasOwn(byConstructor, name) ? byConstructor[name] : undefined;
    if (why !== undefined && isOfNode(constructor)) {
      return { what: `a ${nameOf(value)}`, why: `${why}; ${liveHere}` };
    }
    at = Object.getPrototypeOf(at);
  }
  return undefined;
}

/** A class of the user that happens to be called Socket has a plain chain above it. */
function isOfNode(constructor: unknown): boolean {
  return typeof constructor === 'function' && !/^class\b[^{]*\{[^]*#manycore/.test(String(constructor));
}

function nameOf(value: object): string {
  const constructor: unknown = Reflect.get(value, 'constructor');
  const name = typeof constructor === 'function' ? constructor.name : '';
  return name === '' ? 'object without a class' : name;
}

/** Throws the refusal of `value`, with the path to it. */
export function refuse(value: object, path: readonly string[]): never {
  const { what, why } = refusalOf(value) ?? {
    what: `an instance of ${nameOf(value)}`,
    why: "give its class [Symbol.for('manycore.send')]() and static [Symbol.for('manycore.receive')](data)",
  };
  throw transferError('TRANSFER_UNSUPPORTED', path, `it is ${what}: ${why}`);
}

/** "argument 1 cannot travel: …" with the path from what was sent to the value. */
export function transferError(
  code: ErrorCode,
  path: readonly string[],
  why: string,
  options?: ErrorOptions,
): CodedError {
  const [what = 'the value', ...rest] = path;
  const where = rest.length === 0 ? '' : `\n  path: ${joinPath(path)}`;
  return new CodedError(code, `${what} cannot travel: ${why}${where}`, options);
}

function joinPath(path: readonly string[]): string {
  let joined = '';
  for (const part of path) {
    const isAccess = part.startsWith('.') || part.startsWith('[');
    joined += joined === '' ? part : isAccess ? part : ` → ${part}`;
  }
  return joined;
}
