// Parsers of flag values, for commander.

import { InvalidArgumentError } from 'commander';
import type { Range, StatusAddress, Sticky } from '../serve/index.js';

/** Parses `4` or `2..8`. */
export function countOrRange(text: string): number | Range {
  const [, min, max] = /^(\d+)\.\.(\d+)$/.exec(text) ?? [];
  if (min !== undefined && max !== undefined) return { min: Number(min), max: Number(max) };
  if (/^\d+$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number, or two of them: 2..8');
}

/** Parses `9000` or `10.0.0.1:9000`. */
export function hostAndPort(text: string): number | StatusAddress {
  const [, host, port] = /^(?:(.+):)?(\d+)$/.exec(text) ?? [];
  if (port === undefined) throw new InvalidArgumentError('It must be PORT or HOST:PORT');
  if (host === undefined) return Number(port);
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) };
}

/** Parses `address`, or `cookie:NAME`, `header:NAME`, `query:NAME`. */
export function stickyKey(text: string): Sticky {
  if (text === 'address') return text;
  const [, kind, name = ''] = /^(\w+):(.+)$/.exec(text) ?? [];
  if (kind === 'cookie') return { cookie: name };
  if (kind === 'header') return { header: name };
  if (kind === 'query') return { query: name };
  throw new InvalidArgumentError('It must be address, cookie:NAME, header:NAME or query:NAME');
}

/** Parses a whole number, 0 or more. */
export function wholeNumber(text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number');
}

/** Parses a whole number, or `never`, which is Infinity. */
export function countOrNever(text: string): number {
  return text === 'never' ? Infinity : wholeNumber(text);
}

/** Parses a number above 0, whole or not. */
export function aNumber(text: string): number {
  const number = Number(text);
  if (text.trim() !== '' && number > 0 && Number.isFinite(number)) return number;
  throw new InvalidArgumentError('It must be a number above 0');
}

/** Parses the number of a core, or `each`. */
export function coreOrEach(text: string): number | 'each' {
  if (text === 'each') return text;
  if (/^\d+$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be the number of a core, or each');
}

/** `clusterName` → `cluster-name`. */
export function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
