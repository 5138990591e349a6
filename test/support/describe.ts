// A value as text: everything that code can observe of it except identities of functions. Two values with the
// same text are the same for any program; texts can be compared across processes, values cannot. Runs in
// workers, so it uses nothing but Node.

import * as types from 'node:util/types';

/** Returns the same text for the same value, in any process. */
export function describe(value: unknown): string {
  const numbers = new Map<object, number>();
  return part(value, numbers);
}

function part(value: unknown, numbers: Map<object, number>): string {
  if (typeof value === 'function') return functionText(value, numbers);
  if (typeof value === 'object' && value !== null) return objectText(value, numbers);
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'symbol') return symbolText(value);
  if (typeof value === 'bigint') return `${value}n`;
  return Object.is(value, -0) ? '-0' : String(value);
}

function symbolText(value: symbol): string {
  const key = Symbol.keyFor(value);
  return key === undefined ? value.toString() : `Symbol.for(${key})`;
}

// biome-ignore lint/complexity/noBannedTypes: any function
function functionText(value: Function, numbers: Map<object, number>): string {
  const known = numbers.get(value);
  if (known !== undefined) return `#${known}`;
  numbers.set(value, numbers.size);
  return `function ${value.name} ${Function.prototype.toString.call(value).replace(/\s+/g, ' ')}`;
}

function objectText(value: object, numbers: Map<object, number>): string {
  const known = numbers.get(value);
  if (known !== undefined) return `#${known}`;
  numbers.set(value, numbers.size);
  if (types.isProxy(value)) return 'a Proxy';
  const closed = Object.isFrozen(value)
    ? 'frozen'
    : Object.isSealed(value)
      ? 'sealed'
      : Object.isExtensible(value)
        ? ''
        : 'closed';
  const kind = `${kindOf(value)}:${prototypeName(value)}${closed === '' ? '' : ` ${closed}`}`;
  return `${kind}(${[...slots(value, numbers), ...properties(value, numbers)].join(', ')})`;
}

function kindOf(value: object): string {
  if (ArrayBuffer.isView(value)) return 'view';
  if (types.isAnyArrayBuffer(value)) return 'memory';
  if (types.isArgumentsObject(value)) return 'arguments';
  if (Array.isArray(value)) return 'array';
  for (const name of ['Map', 'Set', 'Date', 'RegExp', 'NativeError', 'BoxedPrimitive'] as const) {
    if (types[`is${name}`](value)) return name;
  }
  return 'object';
}

function prototypeName(value: object): string {
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype === null) return 'null';
  const constructor: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value;
  if (typeof constructor !== 'function') return 'other';
  // A constructor of another realm counts too: the value arrives as ours.
  const isBuiltin = /\[native code\]/.test(Function.prototype.toString.call(constructor));
  return isBuiltin ? constructor.name : `user ${constructor.name}`;
}

/** Contents of an object beside its properties. */
function slots(value: object, numbers: Map<object, number>): string[] {
  if (types.isMap(value)) {
    return [...Map.prototype.entries.call(value)].map(
      ([key, entry]) => `${part(key, numbers)} => ${part(entry, numbers)}`,
    );
  }
  if (types.isSet(value)) {
    return [...Set.prototype.values.call(value)].map((entry) => part(entry, numbers));
  }
  if (value instanceof URL || value instanceof URLSearchParams) return [String(value)];
  if (types.isDate(value)) return [String(Date.prototype.getTime.call(value))];
  if (types.isRegExp(value)) return [`${value.source} ${value.flags}`];
  if (types.isBoxedPrimitive(value)) return [part(value.valueOf(), numbers)];
  if (ArrayBuffer.isView(value)) return viewSlots(value, numbers);
  if (types.isAnyArrayBuffer(value)) return [...memorySlots(value), bufferText(value, numbers)];
  return [];
}

function memorySlots(value: ArrayBufferLike): string[] {
  const most: unknown = Reflect.get(value, 'resizable') === true ? maxBytes(value) : 'fixed';
  return [Buffer.from(value).toString('hex'), String(most)];
}

function maxBytes(value: ArrayBufferLike): unknown {
  return Reflect.get(value, 'maxByteLength');
}

/** The buffers of a value by number: views of one must stay views of one. `Buffer`s share by nature. */
const bufferNumbers = new WeakMap<Map<object, number>, Map<ArrayBufferLike, number>>();

function viewSlots(value: ArrayBufferView, numbers: Map<object, number>): string[] {
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex');
  return [bytes, Buffer.isBuffer(value) ? '' : bufferText(value.buffer, numbers)];
}

function bufferText(buffer: ArrayBufferLike, numbers: Map<object, number>): string {
  const known = bufferNumbers.get(numbers) ?? new Map<ArrayBufferLike, number>();
  bufferNumbers.set(numbers, known);
  if (!known.has(buffer)) known.set(buffer, known.size);
  return `in ${known.get(buffer)}`;
}

function properties(value: object, numbers: Map<object, number>): string[] {
  const isView = ArrayBuffer.isView(value) && !types.isAnyArrayBuffer(value);
  const keys = Reflect.ownKeys(value).filter((key) => {
    if (key === 'stack') return false; // the place where it was made
    if (isView || types.isStringObject(value)) return typeof key === 'symbol' || !/^\d+$/.test(key);
    return !(types.isArgumentsObject(value) && key === 'callee');
  });
  return keys.map((key) => {
    const descriptor = Object.getOwnPropertyDescriptor(value, key);
    const name = typeof key === 'symbol' ? symbolText(key) : key;
    const flags = (['enumerable', 'writable', 'configurable'] as const)
      .map((flag) => (descriptor?.[flag] === true ? '+' : '-'))
      .join('');
    const isAccessor = descriptor?.get !== undefined || descriptor?.set !== undefined;
    const held = isAccessor
      ? `get ${part(descriptor?.get, numbers)} set ${part(descriptor?.set, numbers)}`
      : part(descriptor?.value, numbers);
    return `${name}${flags} ${held}`;
  });
}

/** True: a refusal that names the value with its path, and has a code and an alternative. */
export function isGoodRefusal(error: unknown): boolean {
  if (!(error instanceof Error) || !/^TRANSFER_/.test(String(Reflect.get(error, 'code')))) {
    return false;
  }
  const [said = '', path] = error.message.split('\n  path: ');
  return path !== undefined && said.includes('cannot travel: ') && /[;:] .*\b\w+/.test(said);
}
