// Values that cannot travel, and the alternative to each: one table, used for captures, arguments and
// results. Long (over 400 lines), because it is that table. A refusal is thrown before anything is sent.
// Not here: hazards of variables (hazards.ts).

import { EventEmitter } from 'node:events';
import { Stats } from 'node:fs';
import * as types from 'node:util/types';
import { CodedError, type ErrorCode } from '../../errors.js';
import {
  functionName,
  hasPrivateMembers,
  isDetached,
  isSharedByOtherCopy,
  messageOf,
  ownValue,
  sourceText,
} from '../../lib/index.js';
import { originOf } from '../decode/recreate.js';
import { sendingHalf } from '../late.js';
import type { AnyFunction } from '../types.js';
import { builtinPath, nodeModulePath } from './intrinsics.js';
import { constructorHere } from './realms.js';

/** A text that is made when a message needs it. */
export type Step = string | number | (() => string);
/** From the sent value to a value in it: names, `.keys`, and indices. */
export type Path = readonly Step[];

interface Refusal {
  /** "a Promise" */
  readonly what: string;
  /** The reason, and the way out. */
  readonly why: string;
  /** The same for a result of a function, where that has another way out. */
  readonly whyOfResult?: string;
  /** The same for a value behind the captured `variable`, which the user may not have meant to send. */
  readonly whyInside?: (variable: string) => string;
}

const liveHere = 'open it inside the function, or keep one per worker with perWorker(() => …)';
export const plainResult = 'return plain data of it';

const makeHere = 'make it inside the function, or once per worker with perWorker(() => …)';

const byConstructor: Readonly<Record<string, string>> = {
  Socket: 'a network connection lives in this process',
  TLSSocket: 'a network connection lives in this process',
  Server: 'a listening server lives in this process',
  ChildProcess: 'a child process belongs to the process that started it',
  Worker: 'a Worker belongs to the thread that started it',
  ReadStream: 'an open file lives in this process',
  WriteStream: 'an open file lives in this process',
  Readable: 'a stream is read in this process',
  Writable: 'a stream is written in this process',
  Duplex: 'a stream lives in this process',
  Transform: 'a stream lives in this process',
};

const ofSignal =
  'it belongs to this process; pass the signal as option `signal` of the call, and in the task read ' +
  'taskSignal()';

/** Whole reasons, of classes with a way out of their own. */
const wayOutOf = new Map<AnyFunction, string>([
  [AbortSignal, ofSignal],
  [AbortController, ofSignal],
]);

const blobWayOut =
  'its bytes can only be awaited; pass await blob.arrayBuffer(), and its type, or use threads: option ' +
  "`worker: 'thread'` of the pool";

const handedOver = (what: string): string =>
  `${what}; ${liveHere}; threads (option \`worker: 'thread'\` of the pool) take it by option \`transfer\` of the call`;

const requestIsHere = 'a request is read in this process; take what the task needs from';
const ofRequest = `${requestIsHere} it before the call, as \`const { body, query } = req\`, and use that in the function`;
const requestInside = (variable: string): string =>
  `${requestIsHere} ${variable} before the call, and use that in the function`;

const ofResponse =
  'a response is written in this process; let the function return what is to be sent, and send that ' +
  'here: `res.send(await run(…))`';

const kept = (what: string): string =>
  `Node.js hides its parts; pass ${what}, and make it inside the function`;

/** The same by name, for classes of Node that do not exist in every version, or cost time to read. */
const wayOutByName: Readonly<Record<string, string>> = {
  Blob: blobWayOut,
  File: blobWayOut,
  MessagePort: handedOver('a port lives in one thread'),
  FileHandle: handedOver('an open file lives in one thread'),
  ReadableStream: handedOver('a stream is read in one thread'),
  WritableStream: handedOver('a stream is written in one thread'),
  TransformStream: handedOver('a stream lives in one thread'),
  Module:
    'its bytes cannot be read back; pass those that it was compiled from, and compile them once per ' +
    "worker with perWorker(() => …), or use threads: option `worker: 'thread'` of the pool",
  IncomingMessage: ofRequest,
  Http2ServerRequest: ofRequest,
  ServerResponse: ofResponse,
  Http2ServerResponse: ofResponse,
  Request: 'its body is a stream; pass its url, method and headers, and the source of its body',
  Response: 'its body is a stream; pass await response.json(), .text() or .arrayBuffer()',
  FormData: 'it has files in it, whose bytes can only be awaited; pass them by themselves',
  // Direct instances of these travel.
  URL: kept('its href'),
  URLSearchParams: kept('its toString()'),
  Headers: kept('[...headers]'),
  TextDecoder: kept('its encoding'),
  BlockList: kept('its rules'),
  SocketAddress: kept('its address and port'),
  Memory:
    'its bytes belong to this process; pass a copy of them: new Uint8Array(memory.buffer).slice()',
  Global: 'it belongs to this process; pass its value',
  Table:
    'its functions are native code of this process; make it with their instance inside the function, or ' +
    'once per worker with perWorker(() => …)',
  Instance:
    'its functions are native code of this process; make it inside the function, or once per worker: ' +
    'perWorker(() => new WebAssembly.Instance(new WebAssembly.Module(bytes), imports))',
  CryptoKey: 'only Node.js makes one, and not at once; pass KeyObject.from(key), or its JWK',
};

/** Objects of manycore that cannot travel. */
const refusals = new WeakMap<object, Refusal>();

/** Sets the reason why an object of manycore cannot travel. */
export function setRefusal(value: object, refusal: Refusal): void {
  refusals.set(value, refusal);
}

/** The reason why `value` itself cannot travel, apart from its parts; `undefined`: it may. */
export function refusalOf(value: object): Refusal | undefined {
  const known = refusals.get(value);
  if (known !== undefined) return known;
  if (types.isProxy(value)) {
    return {
      what: 'a Proxy',
      why:
        'its handler is code of this process; pass the object behind it' +
        (typeof value === 'function' ? ` (mocks of node:test are Proxies: ${mockWayOut})` : ''),
    };
  }
  if (types.isPromise(value)) {
    return { what: 'a Promise', why: 'await it first, or make it inside the function' };
  }
  if (types.isWeakMap(value) || types.isWeakSet(value)) {
    const why = 'its entries cannot be listed';
    return {
      what: `a ${nameOfClass(value)}`,
      why:
        `${why}; use a Map or Set, or make it inside the function; where it is of a library, make the ` +
        "library's object in a module of yours and import that in the file of the function, or make it " +
        'once per worker with perWorker(() => …)',
      whyOfResult: `${why}; ${plainResult}`,
    };
  }
  if (value instanceof WeakRef) {
    return {
      what: 'a WeakRef',
      why: 'it holds nothing by itself; pass its target: ref.deref()',
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
      why:
        'a copy would no longer be shared; allocate it with shared(bytes), pass a copy, or use threads: ' +
        "option `worker: 'thread'` of the pool",
    };
  }
  const memory = ArrayBuffer.isView(value) ? value.buffer : value;
  if (types.isArrayBuffer(memory) && isDetached(memory)) {
    return {
      what: 'a detached ArrayBuffer',
      why: 'its memory was transferred away; pass the object that has it now, or copy it before: buffer.slice()',
    };
  }
  if (types.isArrayBuffer(memory) && isSharedByOtherCopy(memory)) {
    return {
      what: 'memory that shared() of another copy of manycore made',
      why:
        'a copy would no longer be shared; allocate it with shared() of the manycore that runs the ' +
        'task, or install one version only',
    };
  }
  return refusalByClass(value);
}

function isSharedView(value: object): boolean {
  return ArrayBuffer.isView(value) && types.isSharedArrayBuffer(value.buffer);
}

function isIterator(value: object): boolean {
  return /^(?:(?:Array|String|RegExp String|Segmenter String|URLSearchParams|Headers|FormData) Iterator|Iterator Helper)$/.test(
    tagOf(value),
  );
}

/** The `Symbol.toStringTag` of `value`, where that is a data property: no getter of the user runs. */
function tagOf(value: object): string {
  for (let at: object | null = value; at !== null; at = Object.getPrototypeOf(at)) {
    const tag: unknown = ownValue(at, Symbol.toStringTag);
    if (typeof tag === 'string') return tag;
  }
  return '';
}

/** Classes of Node and the language whose instances consist of their properties alone. */
const byValue = new Set<unknown>([
  // Objects of functions that inherit from an error, as classes were written before ES2015.
  Error,
  AggregateError,
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
  Object,
  Array,
  Map,
  Set,
  Date,
  RegExp,
  Boolean,
  Number,
  String,
  BigInt,
  Symbol,
  ArrayBuffer,
  Function,
  EventEmitter,
  DOMException,
]);

/** Newer versions wrap the constructor that `node:fs` exports. */
const statsPrototypes = new Set<unknown>([Stats.prototype, Object.getPrototypeOf(Stats.prototype)]);

const verdicts = new WeakMap<AnyFunction, Refusal | false>();

/** The first class above `value` whose instances a copy cannot stand for. */
function refusalByClass(value: object): Refusal | undefined {
  if (ArrayBuffer.isView(value) || types.isNativeError(value)) return undefined;
  return firstRefusal(value, verdictOn);
}

function firstRefusal(
  value: object,
  judge: (constructor: AnyFunction) => Refusal | false,
): Refusal | undefined {
  let below: AnyFunction | undefined;
  for (let at: unknown = value; typeof at === 'object' && at !== null; ) {
    const constructor: unknown = ownValue(at, 'constructor');
    if (typeof constructor === 'function' && constructor.prototype === at) {
      const verdict = judge(constructor);
      if (verdict !== false && below !== undefined && isOfNode(constructor)) {
        const what = `an instance of ${functionName(below) || 'an anonymous class'}, whose class extends`;
        return { ...verdict, what: `${what} ${functionName(constructor)}` };
      }
      if (verdict !== false) return verdict;
      below ??= constructor;
    }
    at = Object.getPrototypeOf(at);
  }
  return undefined;
}

function verdictOn(constructor: AnyFunction): Refusal | false {
  const verdict = verdicts.get(constructor) ?? judge(constructor);
  verdicts.set(constructor, verdict);
  return verdict;
}

function judge(constructor: AnyFunction): Refusal | false {
  const { name } = constructor;
  if (byValue.has(constructorHere(constructor))) return false;
  if (statsPrototypes.has(constructor.prototype)) return false;
  if (isOfNode(constructor)) {
    const known =
      wayOutOf.get(constructor) ??
      (Object.hasOwn(wayOutByName, name) ? wayOutByName[name] : undefined);
    if (known !== undefined) {
      const refusal = { what: withArticle(name), why: known };
      return known === ofRequest ? { ...refusal, whyInside: requestInside } : refusal;
    }
    if (Reflect.get(Intl, name) === constructor) return refusalOfIntl(name);
    const isLive = Object.hasOwn(byConstructor, name);
    const why = isLive ? byConstructor[name] : 'a copy cannot hold its state inside Node.js';
    return {
      what: withArticle(name),
      why: `${why}; ${isLive ? liveHere : makeHere}`,
      whyOfResult: `${why}; ${plainResult}`,
    };
  }
  return refusalOfPrivate(constructor);
}

function refusalOfPrivate(constructor: AnyFunction): Refusal | false {
  const { name } = constructor;
  const { readCode, scriptOf } = sendingHalf();
  const code = readCode(sourceText(constructor));
  if (code?.hasPrivateMembers !== true) return false;
  const isOfPackage = scriptOf(constructor)?.includes('/node_modules/') === true;
  const why = 'its class has private members, which a copy cannot hold';
  return {
    what: `an instance of ${name === '' ? 'an anonymous class' : name}`,
    why: isOfPackage
      ? `${why}; make it inside the function, in a module of yours that the file of the function imports, ` +
        `or once per worker: perWorker(() => new ${name || 'X'}(…))`
      : `${why}; give the class ${hooks}, or make the instance inside the function`,
    whyOfResult: `${why}; ${isOfPackage ? plainResult : `give the class ${hooks}, or ${plainResult}`}`,
  };
}

/** The refusal of private members, of a class above `value` or of another one. */
function refusalByMembers(value: object): Refusal | undefined {
  if (types.isProxy(value) || !hasPrivateMembers(value)) return undefined;
  const isFunction = typeof value === 'function';
  return (
    firstRefusal(isFunction ? Object.getPrototypeOf(value) : value, refusalOfPrivate) ?? {
      what: `${isFunction ? 'a function' : 'an object'} ${stamped.what}`,
      why: stamped.why,
    }
  );
}

const stamped: Refusal = {
  what: 'with private members of a class that is not above it',
  why: 'a copy cannot hold them; pass their values, or make it inside the function',
};

/** Refuses an object of Node that has private members of a user's class. */
export function refuseStamped(value: object, path: Path): never {
  const what = `it is ${withArticle(nameOfClass(value))} ${stamped.what}`;
  throw transferError('TRANSFER_UNSUPPORTED', path, `${what}: ${stamped.why}`);
}

/** The alternative to passing a mock function of a test runner. */
export const mockWayOut = 'pass a plain function, or make the mock inside the function';

function refusalOfIntl(name: string): Refusal {
  const made = `new Intl.${name}(locale, options)`;
  return {
    what: `an Intl.${name}`,
    why:
      `its rules lie inside this process; pass its locale and options, and make it in the task or ` +
      `once per worker: perWorker(() => ${made})`,
  };
}

function withArticle(name: string): string {
  return `${/^[AEIO]/.test(name) ? 'an' : 'a'} ${name}`;
}

const hooks =
  "[Symbol.for('manycore.send')]() { return data } and " +
  "static [Symbol.for('manycore.receive')](data) { return new … }";

/** True: built in, native, or from a script of Node. */
export function isOfNode(constructor: AnyFunction): boolean {
  if (builtinPath(constructor) !== undefined || nodeModulePath(constructor) !== undefined)
    return true;
  if (originOf(constructor) !== undefined) return false;
  const { readCode, scriptOf } = sendingHalf();
  if (readCode(sourceText(constructor)) === undefined) return true;
  return scriptOf(constructor)?.startsWith('node:') === true;
}

/** The name of the class of `value`, for messages. */
export function nameOfClass(value: object): string {
  const constructor: unknown = Reflect.get(value, 'constructor');
  const name = typeof constructor === 'function' ? functionName(constructor) : '';
  return name === '' ? 'object without a class' : name;
}

/** Throws the refusal of `value`, with the path to it. */
export function refuse(value: object, path: Path): never {
  const refusal: Refusal = refusalOf(value) ??
    refusalByMembers(value) ?? {
      what: `an instance of ${nameOfClass(value)}`,
      why: `its class defines how to send it but not how to receive it: give the class ${hooks}`,
    };
  const { what, whyOfResult, whyInside } = refusal;
  const { variable = '', members = '' } = capturedAt(path);
  let { why } = refusal;
  if (path[0] === 'the result') why = whyOfResult ?? why;
  else if (members !== '') why = whyInside?.(variable) ?? why;
  const subject = members === '' ? 'it' : variable + members;
  throw transferError('TRANSFER_UNSUPPORTED', path, `${subject} is ${what}: ${why}`);
}

/** The captured variable that `path` goes through last, and the rest of the path, as `.request[0]`. */
function capturedAt(path: Path): { variable?: string; members?: string } {
  const steps = path.map(shown);
  const at = steps.findLastIndex((step) => step.startsWith('variable '));
  const isOfFunction = /^(?:function|class|anonymous function)\b/.test(steps[at + 1] ?? '');
  const members = steps.slice(isOfFunction ? at + 2 : at + 1);
  if (at < 0 || !members.every(isAccess)) return {};
  return {
    variable: /^variable ([^,]*)/.exec(steps[at] ?? '')?.[1] ?? '',
    members: members.join(''),
  };
}

function isAccess(part: string): boolean {
  return part.startsWith('.') || part.startsWith('[');
}

/** "the arguments cannot travel: …" with the path from the sent value to the refused one. */
export function transferError(
  code: ErrorCode,
  path: Path,
  why: string,
  options?: ErrorOptions,
): CodedError {
  const [what = 'the value'] = path;
  const where = path.length <= 1 ? '' : `\n  path: ${joinPath(path)}`;
  return new CodedError(code, `${shown(what)} cannot travel: ${why}${where}`, options);
}

/** Steps shown of the path to a value that is nested too deeply. */
const shownSteps = 8;

/**
 * The error for a throw by a getter or trap of the value at `path`, or by V8 where it is nested too deeply.
 */
export function refusalFor(error: unknown, path: Path): CodedError {
  const isDeep = types.isNativeError(error) && /call stack/.test(error.message);
  const why = isDeep
    ? 'it is nested too deeply: flatten it, for instance into an array'
    : `reading it throws (${messageOf(error)}): pass its contents as plain data, or make it inside the function`;
  const shown = isDeep ? path.slice(0, shownSteps) : path;
  return transferError('TRANSFER_UNSUPPORTED', shown, why, { cause: error });
}

/** A path in the form of messages. */
export function joinPath(path: Path): string {
  let joined = '';
  for (const step of path) {
    const part = shown(step);
    joined += joined === '' ? part : isAccess(part) ? part : ` → ${part}`;
  }
  return joined;
}

function shown(step: Step): string {
  if (typeof step === 'number') return `[${step}]`;
  return typeof step === 'string' ? step : step();
}
