// Custom codecs, as in Vert.x: they encode a body before it travels, and decode it where it arrives. The
// codec's name goes with the message, in a header that programs cannot see. Without a codec a body travels as
// the arguments of `run` do (context/).

import { CodedError } from '../../errors.js';
import { checkFunction, invalid, messageOf, string } from '../../lib/index.js';
import { codecHeader } from '../delivery/headers.js';
import type { Content } from '../delivery/message.js';

export interface BusCodec<Value = unknown, Encoded = unknown> {
  /** The same on both sides. */
  readonly name: string;
  /** Bodies of exactly this class are encoded by default. */
  readonly type?: (new (...args: never[]) => Value) | undefined;
  /** Returns the substitute that travels: plain data, or bytes. */
  encode(body: Value): Encoded;
  /** Returns the body. */
  decode(encoded: Encoded): Value;
}

/** In force until it is closed. */
export interface Registration extends Disposable {
  close(): void;
}

function noCodec(name: string): CodedError {
  const message = `there is no codec ${name} in this loop: add it wherever its messages are sent or come`;
  return new CodedError('BUS_CODEC_FAILED', message);
}

function codecFailed(name: string, what: string, cause: unknown): CodedError {
  const message = `the codec ${name} cannot ${what} a body: ${messageOf(cause)}`;
  return new CodedError('BUS_CODEC_FAILED', message, { cause });
}

interface Added {
  readonly name: string;
  /** Name of the unit that added it; `undefined`: the program. */
  readonly unit: string | undefined;
  /** The codec's `encode` and `decode`, unbound. */
  readonly functions: readonly unknown[];
  readonly type: unknown;
  readonly encode: (body: unknown) => unknown;
  readonly decode: (encoded: unknown) => unknown;
}

/** Throws `OPTION_INVALID` for classes of the language and `Buffer`: messages of others consist of them. */
function checkType(type: object): void {
  const text: string = Function.prototype.toString.call(type);
  if (type !== Buffer && !/\{\s*\[native code\]\s*\}\s*$/.test(text)) return;
  const what = 'a class of the program; name the codec of such bodies by the option codec';
  throw invalid('codec.type', type, what);
}

/** Throws `OPTION_INVALID` for a second codec of a name or class, unless both are the same. */
function checkOther(added: Added, before: Added): void {
  const { name, type, unit, functions } = added;
  const isSameName = name === before.name;
  const isSameType = type === before.type;
  if (!isSameName && (!isSameType || type === undefined)) return;
  if (unit !== undefined && unit === before.unit) return;
  if (isSameName && isSameType && functions.every((fn, at) => fn === before.functions[at])) return;
  const what = isSameName ? 'of this name' : `for its class, ${before.name}`;
  throw invalid('codec.name', name, `free: another codec ${what} is added here; close that first`);
}

export class Codecs {
  /** True: bodies of some class are encoded although no codec is named. */
  hasTypes = false;
  /**
   * The last one of a name counts. Several units of a loop may add the same codec, and instances of one unit
   * even different ones: two versions of it may be there for a moment.
   */
  readonly #added: Added[] = [];
  readonly #byName = new Map<string, Added>();
  readonly #byType = new Map<unknown, Added>();

  /** `unit`: the one that adds it. Throws `OPTION_INVALID`. */
  add<Value, Encoded>(codec: BusCodec<Value, Encoded>, unit?: string): Registration {
    if (typeof codec !== 'object' || codec === null) {
      throw invalid('codec', codec, 'an object with name, encode and decode');
    }
    const { type } = codec;
    const encode = checkFunction('codec.encode', codec.encode);
    const decode = checkFunction('codec.decode', codec.decode);
    if (type !== undefined) checkType(checkFunction('codec.type', type));
    const added: Added = {
      name: string('codec.name', codec.name, 'a name'),
      type,
      unit,
      functions: [encode, decode],
      encode: (body) => Reflect.apply(encode, codec, [body]),
      decode: (encoded) => Reflect.apply(decode, codec, [encoded]),
    };
    for (const before of this.#added) checkOther(added, before);
    this.#added.push(added);
    this.#index();
    const close = (): void => {
      const at = this.#added.indexOf(added);
      if (at >= 0) this.#added.splice(at, 1);
      this.#index();
    };
    return { close, [Symbol.dispose]: close };
  }

  #index(): void {
    this.#byName.clear();
    this.#byType.clear();
    for (const codec of this.#added) {
      this.#byName.set(codec.name, codec);
      if (codec.type !== undefined) this.#byType.set(codec.type, codec);
    }
    this.hasTypes = this.#byType.size > 0;
  }

  /** Encodes by the codec of this name or of the body's class, if there is one. Throws `BUS_CODEC_FAILED`. */
  encode<C extends Content>(content: C, name: string | undefined): C {
    const { body, headers } = content;
    const codec =
      name === undefined
        ? this.#byType.get(Object(body).constructor)
        : this.#byName.get(string('codec', name, 'the name of a codec'));
    if (codec === undefined) {
      if (name === undefined) return content;
      throw noCodec(name);
    }
    let encoded: unknown;
    try {
      encoded = codec.encode(body);
    } catch (cause) {
      throw codecFailed(codec.name, 'encode', cause);
    }
    const marked = Object.freeze({ ...headers, [codecHeader]: codec.name });
    return { ...content, body: encoded, headers: marked };
  }

  /** Decodes a body, or returns it unchanged. Throws `BUS_CODEC_FAILED`. */
  decode<C extends Content>(content: C): C {
    const { [codecHeader]: name, ...headers } = content.headers;
    if (name === undefined) return content;
    const codec = typeof name === 'string' ? this.#byName.get(name) : undefined;
    if (codec === undefined) throw noCodec(String(name));
    try {
      return { ...content, body: codec.decode(content.body), headers: Object.freeze(headers) };
    } catch (cause) {
      throw codecFailed(codec.name, 'decode', cause);
    }
  }
}
