// Values with private members, of their class, of classes above it and of others. Every channel refuses each.

import { AsyncLocalStorage } from 'node:async_hooks';
import {
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
} from 'node:crypto';
import { BlockList, SocketAddress } from 'node:net';

class Failure extends Error {
  readonly #code = 5;
  get code(): number {
    return this.#code;
  }
}

class Later extends Failure {}

class Ended extends DOMException {
  readonly #code = 5;
  override get code(): number {
    return this.#code;
  }
}

class Bytes extends Uint8Array {
  readonly #unit = 'B';
  get unit(): string {
    return this.#unit;
  }
}

class Window extends DataView<ArrayBuffer> {
  readonly #unit = 'B';
  get unit(): string {
    return this.#unit;
  }
}

class Memory extends ArrayBuffer {
  readonly #unit = 'B';
  get unit(): string {
    return this.#unit;
  }
}

class Table extends Map<string, number> {
  readonly #n = 1;
  get n(): number {
    return this.#n;
  }
}

class List extends Array<number> {
  readonly #n = 1;
  get n(): number {
    return this.#n;
  }
}

class Day extends Date {
  readonly #n = 1;
  get n(): number {
    return this.#n;
  }
}

class Point {
  x = 1;
  readonly #n = 1;
  get n(): number {
    return this.#n;
  }
}

class Methods {
  x = 1;
  run(): number {
    return this.#hidden();
  }
  #hidden(): number {
    return this.x;
  }
}

class Other {
  x = 1;
}

class Given {
  constructor(given: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the subject
    return given;
  }
}

class Stamp extends Given {
  readonly #n = 1;
  static reads(value: object): boolean {
    return #n in value && value.#n === 1;
  }
  static of<T extends object>(value: T): T {
    new Stamp(value);
    return value;
  }
}

function withPrototype(value: object, prototype: object | null): object {
  Object.setPrototypeOf(value, prototype);
  return value;
}

class Moved {
  readonly #n = 1;
  get n(): number {
    return this.#n;
  }
}
Reflect.deleteProperty(Moved.prototype, 'constructor');

function keyPair() {
  return generateKeyPairSync('ed25519', {
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
}

const many = Object.fromEntries(Array.from({ length: 3000 }, (_, n) => [`key${n}`, n]));

export const privateValues: Readonly<Record<string, () => unknown>> = {
  'an error': () => new Failure('failed'),
  'an error of a class below': () => new Later('failed'),
  'a DOMException': () => new Ended('ended'),
  'a typed array': () => new Bytes(3),
  'a DataView': () => new Window(new ArrayBuffer(4)),
  'an ArrayBuffer': () => new Memory(3),
  'a Map': () => new Table(),
  'an array': () => List.of(1, 2),
  'a Date': () => new Day(0),
  'an instance': () => new Point(),
  'one with methods alone': () => new Methods(),
  'one without a prototype': () => withPrototype(new Point(), null),
  'one with methods alone, without a prototype': () => withPrototype(new Methods(), null),
  'one with the prototype of plain objects': () => withPrototype(new Point(), Object.prototype),
  'one with the prototype of another class': () => withPrototype(new Point(), Other.prototype),
  'an error without a prototype': () => withPrototype(new Failure('failed'), null),
  'one whose prototype names no class': () => new Moved(),
  'a stamped object': () => Stamp.of({ a: 1 }),
  'a stamped object beside one like it': () => [{ a: 1 }, Stamp.of({ a: 1 })],
  'a stamped object of many keys': () => Stamp.of({ ...many }),
  'a stamped object without a prototype': () => Stamp.of(Object.create(null)),
  'a stamped instance': () => [new Other(), Stamp.of(new Other())],
  'a stamped frozen object': () => Object.freeze(Stamp.of({ a: 1 })),
  'a stamped array': () => Stamp.of([1]),
  'a stamped list of bytes': () => Stamp.of(new Uint8Array(3)),
  'a stamped Buffer': () => Stamp.of(Buffer.from('abc')),
  'a stamped ArrayBuffer': () => Stamp.of(new ArrayBuffer(3)),
  'a stamped Map': () => Stamp.of(new Map([[1, 2]])),
  'a stamped Set': () => Stamp.of(new Set([1])),
  'a stamped Date': () => Stamp.of(new Date(0)),
  'a stamped RegExp': () => Stamp.of(/a/),
  'a stamped boxed number': () => Stamp.of(Object(1)),
  'a stamped boxed symbol': () => Stamp.of(Object(Symbol('a'))),
  'a stamped error': () => Stamp.of(new TypeError('a')),
  'a stamped URL': () => Stamp.of(new URL('http://a/')),
  'stamped URLSearchParams': () => Stamp.of(new URLSearchParams('a=1')),
  'stamped Headers': () => Stamp.of(new Headers()),
  'stamped FormData': () => Stamp.of(new FormData()),
  'a stamped TextDecoder': () => Stamp.of(new TextDecoder()),
  'a stamped BlockList': () => Stamp.of(new BlockList()),
  'a stamped SocketAddress': () => Stamp.of(new SocketAddress({})),
  'a stamped AsyncLocalStorage': () => Stamp.of(new AsyncLocalStorage()),
  'a stamped key': () => Stamp.of(createSecretKey(Buffer.from('abc'))),
  'a stamped public key': () => Stamp.of(createPublicKey(keyPair().publicKey)),
  'a stamped function': () => Stamp.of(() => 1),
  'stamped arguments': () =>
    Stamp.of(
      (function (..._list: number[]) {
        // biome-ignore lint/complexity/noArguments: the subject
        return arguments;
      })(1),
    ),
};

/** Equal values without private members: each arrives. */
export const ordinaryValues: Readonly<Record<string, () => unknown>> = {
  'an object of a class with private members that another made': () => ({ x: 1 }),
  'an object without a prototype': () => Object.assign(Object.create(null), { a: 1 }),
  'an error with a code': () => Object.assign(new Error('a'), { code: 'A' }),
  'a URL': () => new URL('http://a/'),
  URLSearchParams: () => new URLSearchParams('a=1'),
  Headers: () => new Headers(),
  FormData: () => new FormData(),
  'a TextDecoder': () => new TextDecoder(),
  'a BlockList': () => new BlockList(),
  'a SocketAddress': () => new SocketAddress({}),
  'a key': () => createSecretKey(Buffer.from('abc')),
  'a public key': () => createPublicKey(keyPair().publicKey),
  'a private key': () => createPrivateKey(keyPair().privateKey),
  'a name that begins with #': () => ({ '#n': 1 }),
  'a stamped object that was copied': () => ({ ...Stamp.of({ a: 1 }) }),
};
