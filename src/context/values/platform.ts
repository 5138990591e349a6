// Objects of Node and the web that can be re-created from their own methods, at once and without loss. Others
// are refused (refuse.ts). Only direct instances: a user's subclass may hold more.

import type { KeyObject } from 'node:crypto';
import { Dirent } from 'node:fs';
import type { BlockList } from 'node:net';
import * as types from 'node:util/types';
import { defineOwn, functionName, nodeCrypto, nodeNet, ownValue } from '../../lib/index.js';
import { unmarked } from '../modules/marks.js';
import { corrupt } from '../wire.js';
import { builtinPath } from './intrinsics.js';

/** Primitives and bytes, and lists of them: values that the serializer writes directly. */
export type Parts = readonly unknown[];

interface Kind {
  /** The parts of an instance; `undefined`: it is none, or it cannot be taken apart. */
  readonly partsOf: (value: object) => Parts | undefined;
  readonly make: (parts: Parts) => unknown;
}

const text = (part: unknown): string => {
  if (typeof part !== 'string') throw corrupt('a part of an object is no text');
  return part;
};
const bytes = (part: unknown): Buffer => {
  if (!Buffer.isBuffer(part)) throw corrupt('a part of an object is no bytes');
  return part;
};
const pairs = (parts: Parts): [string, string][] =>
  parts.map((pair) => {
    if (!Array.isArray(pair)) throw corrupt('a part of an object is no pair');
    return [text(pair[0]), text(pair[1])];
  });

function isDirect(value: object, constructor: { readonly prototype: object }): boolean {
  return Object.getPrototypeOf(value) === constructor.prototype;
}

/** True: the same, or an instance of a user's class that extends it, which travels with its prototype. */
function isOfUser(value: object, constructor: { readonly prototype: object }): boolean {
  if (Object.hasOwn(value, 'constructor')) return false; // the prototype of the class
  return isDirect(value, constructor) || builtinPath(Object.getPrototypeOf(value)) === undefined;
}

/**
 * True: its class has this name. Tested first, because the first read of `Headers` or `FormData` loads all of
 * Node's `fetch`. That takes long, and fails where a program has added `get` to `Object.prototype`.
 */
function isTagged(value: object, tag: string): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  return prototype !== null && ownValue(prototype, Symbol.toStringTag) === tag;
}

/** True: its class may be the one of Node that has this name. */
function isNamed(value: object, name: string): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  const constructor = prototype === null ? undefined : ownValue(prototype, 'constructor');
  return typeof constructor === 'function' && functionName(constructor) === name;
}

/** By the number in a payload. */
const kinds: readonly Kind[] = [
  {
    partsOf: (value) =>
      value instanceof DOMException && isOfUser(value, DOMException)
        ? [value.message, value.name, value.stack ?? '']
        : undefined,
    make: ([message, name, stack]) => {
      const made = new DOMException(text(message), text(name));
      defineOwn(made, 'stack', {
        value: unmarked(text(stack)),
        writable: true,
        enumerable: false,
        configurable: true,
      });
      return made;
    },
  },
  {
    partsOf: (value) => (isDirect(value, TextEncoder) ? [] : undefined),
    make: () => new TextEncoder(),
  },
  {
    partsOf: (value) =>
      value instanceof TextDecoder && isDirect(value, TextDecoder)
        ? [value.encoding, value.fatal, value.ignoreBOM]
        : undefined,
    make: ([encoding, fatal, ignoreBOM]) =>
      new TextDecoder(text(encoding), { fatal: fatal === true, ignoreBOM: ignoreBOM === true }),
  },
  {
    partsOf: (value) =>
      isTagged(value, 'Headers') && value instanceof Headers && isDirect(value, Headers)
        ? [...value.entries()]
        : undefined,
    make: (parts) => {
      const made = new Headers();
      for (const [name, value] of pairs(parts)) made.append(name, value);
      return made;
    },
  },
  {
    partsOf: (value) => {
      if (!isTagged(value, 'FormData')) return undefined;
      if (!(value instanceof FormData) || !isDirect(value, FormData)) return undefined;
      const entries = [...value.entries()];
      return entries.every(([, entry]) => typeof entry === 'string') ? entries : undefined;
    },
    make: (parts) => {
      const made = new FormData();
      for (const [name, value] of pairs(parts)) made.append(name, value);
      return made;
    },
  },
  { partsOf: keyParts, make: makeKey },
  {
    partsOf: (value) => {
      if (!isNamed(value, 'X509Certificate')) return undefined;
      const { X509Certificate } = nodeCrypto();
      const isOne = value instanceof X509Certificate && isDirect(value, X509Certificate);
      return isOne ? [value.raw] : undefined;
    },
    make: ([raw]) => new (nodeCrypto().X509Certificate)(bytes(raw)),
  },
  {
    partsOf: (value) => {
      if (!isNamed(value, 'SocketAddress')) return undefined;
      const { SocketAddress } = nodeNet();
      return value instanceof SocketAddress && isDirect(value, SocketAddress)
        ? [value.address, value.port, value.family, value.flowlabel]
        : undefined;
    },
    make: ([address, port, family, flowlabel]) =>
      new (nodeNet().SocketAddress)({
        address: text(address),
        port: Number(port),
        family: family === 'ipv6' ? 'ipv6' : 'ipv4',
        flowlabel: Number(flowlabel),
      }),
  },
  {
    partsOf: (value) => {
      if (!isNamed(value, 'BlockList')) return undefined;
      const { BlockList } = nodeNet();
      const isOne = value instanceof BlockList && isDirect(value, BlockList);
      return isOne ? [...value.rules] : undefined;
    },
    make: (parts) => {
      const made = new (nodeNet().BlockList)();
      // The list has the rule that was added last in front.
      for (const rule of [...parts].reverse()) addRule(made, text(rule));
      return made;
    },
  },
  {
    partsOf: (value) => {
      if (!(value instanceof Dirent) || !isDirect(value, Dirent)) return undefined;
      const type = Object.getOwnPropertySymbols(value)[0];
      if (type === undefined) return undefined;
      return [value.name, Reflect.get(value, type), Reflect.get(value, 'parentPath')];
    },
    make: (parts) => Reflect.construct(Dirent, parts),
  },
  ...temporalKinds(),
];

function keyParts(value: object): Parts | undefined {
  if (!types.isKeyObject(value)) return undefined;
  if (value.type === 'secret') return ['secret', value.export()];
  return value.type === 'public'
    ? ['public', value.export({ format: 'der', type: 'spki' })]
    : ['private', value.export({ format: 'der', type: 'pkcs8' })];
}

function makeKey([type, material]: Parts): KeyObject {
  const key = bytes(material);
  const { createPrivateKey, createPublicKey, createSecretKey } = nodeCrypto();
  if (type === 'secret') return createSecretKey(key);
  return type === 'public'
    ? createPublicKey({ key, format: 'der', type: 'spki' })
    : createPrivateKey({ key, format: 'der', type: 'pkcs8' });
}

function addRule(list: BlockList, rule: string): void {
  const [, kind, version, what = ''] = /^(\w+): (IPv[46]) (.+)$/.exec(rule) ?? [];
  const family = version === 'IPv6' ? 'ipv6' : 'ipv4';
  const [first = '', second = ''] = what.split(kind === 'Subnet' ? '/' : '-');
  if (kind === 'Address') list.addAddress(first, family);
  else if (kind === 'Range') list.addRange(first, second, family);
  else if (kind === 'Subnet') list.addSubnet(first, Number(second), family);
  else throw corrupt('a BlockList has a rule of no known kind');
}

/** Classes that are re-created from their text, which is complete. Node 26 has them. */
function temporalKinds(): Kind[] {
  const temporal: unknown = Reflect.get(globalThis, 'Temporal');
  const names =
    'Instant ZonedDateTime PlainDateTime PlainDate PlainTime PlainYearMonth PlainMonthDay Duration';
  return names.split(' ').flatMap((name) => {
    const constructor: unknown =
      typeof temporal === 'object' && temporal !== null ? Reflect.get(temporal, name) : undefined;
    if (typeof constructor !== 'function') return [];
    const from: unknown = Reflect.get(constructor, 'from');
    if (typeof from !== 'function') return [];
    return [
      {
        partsOf: (value: object) =>
          Object.getPrototypeOf(value) === constructor.prototype ? [String(value)] : undefined,
        make: ([said]: Parts) => Reflect.apply(from, constructor, [text(said)]),
      },
    ];
  });
}

/** The kind and parts from which `value` is made again; `undefined`: it is of no such kind. */
export function platformParts(value: object): readonly [kind: number, parts: Parts] | undefined {
  if (Object.getPrototypeOf(value) === Object.prototype || Array.isArray(value)) return undefined;
  for (const [kind, { partsOf }] of kinds.entries()) {
    const parts = partsOf(value);
    if (parts !== undefined) return [kind, parts];
  }
  return undefined;
}

/** Makes an object from the result of `platformParts`. Throws when the parts are wrong. */
export function makePlatform(kind: number, parts: Parts): object {
  const made: unknown = kinds[kind]?.make(parts);
  if (typeof made !== 'object' || made === null) throw corrupt(`no object is of kind ${kind}`);
  return made;
}
