// The first lines on a connection between two programs of one machine, each a JSON object: every version can read
// them. Afterwards the connection is the channel, or two descriptors come over it.

import type { Socket } from 'node:net';
import { CodedError } from '../../errors.js';
import { packageVersion } from '../../lib/index.js';
import { jsonOf } from '../protocol.js';

/** Raised with each change of these lines, of the frames of the bus or of the segment. */
export const localProtocol = 1;

const maxLineBytes = 4096;

/** A member of the bus: a program (member 0), or one of its loops. */
export interface Greeting {
  readonly protocol: number;
  /** Version of manycore, for people. */
  readonly version: string;
  /** Name of the bus. */
  readonly name: string;
  /** Id of the program, random. */
  readonly node: string;
  readonly member: number;
  readonly host: string;
  readonly pid: number;
  /** True: it can share memory. */
  readonly sharesMemory: boolean;
}

export type Line =
  /** The first line of the one that connects. */
  | { readonly type: 'hello'; readonly greeting: Greeting }
  /**
   * The answer. With a `token`, descriptors are expected on this connection, and a line `sent` on another one;
   * without, the connection is the channel from now on.
   */
  | { readonly type: 'welcome'; readonly greeting: Greeting; readonly token?: string }
  /** The answer where the two are connected already, or the other one connects. */
  | { readonly type: 'connected' }
  | { readonly type: 'refused'; readonly why: string }
  /** The first line on another connection: the descriptors are on their way. */
  | { readonly type: 'sent'; readonly token: string };

/** The name of a member's socket without its ending, and of its link: unique on the machine. */
export function memberId({ node, member }: Pick<Greeting, 'node' | 'member'>): string {
  return `${node}-${member}`;
}

export function writeLine(line: Line): string {
  return `${JSON.stringify(line)}\n`;
}

function corrupt(): CodedError {
  return new CodedError('TRANSFER_CORRUPT', 'a connection of the local bus began with no greeting');
}

/** Throws `TRANSFER_CORRUPT`. */
export function parseLine(text: string): Line {
  const fields = fieldsOf(jsonOf(Buffer.from(text)));
  const type = fields.get('type');
  switch (type) {
    case 'hello':
      return { type, greeting: parseGreeting(fields.get('greeting')) };
    case 'welcome': {
      const greeting = parseGreeting(fields.get('greeting'));
      const token = fields.get('token');
      return typeof token === 'string' ? { type, greeting, token } : { type, greeting };
    }
    case 'connected':
      return { type };
    case 'refused':
      return { type, why: textOf(fields, 'why') };
    case 'sent':
      return { type, token: textOf(fields, 'token') };
    default:
      throw corrupt();
  }
}

function fieldsOf(value: unknown): ReadonlyMap<string, unknown> {
  if (typeof value !== 'object' || value === null) throw corrupt();
  return new Map<string, unknown>(Object.entries(value));
}

function textOf(fields: ReadonlyMap<string, unknown>, name: string): string {
  const value = fields.get(name);
  if (typeof value !== 'string') throw corrupt();
  return value;
}

function numberOf(fields: ReadonlyMap<string, unknown>, name: string): number {
  const value = fields.get(name);
  if (typeof value !== 'number') throw corrupt();
  return value;
}

function parseGreeting(value: unknown): Greeting {
  const fields = fieldsOf(value);
  return {
    protocol: numberOf(fields, 'protocol'),
    version: textOf(fields, 'version'),
    name: textOf(fields, 'name'),
    node: textOf(fields, 'node'),
    member: numberOf(fields, 'member'),
    host: textOf(fields, 'host'),
    pid: numberOf(fields, 'pid'),
    sharesMemory: fields.get('sharesMemory') === true,
  };
}

/**
 * Returns why a member cannot be on the bus `own`, in one sentence for a program with manycore `ownVersion`;
 * `undefined`: it can.
 */
export function objection(
  { protocol, version, name, host, pid }: Greeting,
  own: string,
  ownVersion = packageVersion(),
): string | undefined {
  const who = `the program at ${host}, process ${pid},`;
  if (protocol !== localProtocol) {
    const ours = `this one manycore ${ownVersion}`;
    return `${who} runs manycore ${version}, ${ours}: these versions are incompatible`;
  }
  return name === own ? undefined : `${who} is on the bus ${name}, and this one on ${own}`;
}

/**
 * Resolves with the first line of a connection, which is paused then, with the bytes behind it to be read again;
 * `undefined`: it has ended, or has sent no line.
 */
export function readLine(socket: Socket): Promise<string | undefined> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0);
    const settle = (line: string | undefined): void => {
      socket.off('data', onData).off('close', onClose).off('end', onClose);
      resolve(line);
    };
    const onClose = (): void => settle(undefined);
    const onData = (piece: Buffer): void => {
      bytes = Buffer.concat([bytes, piece]);
      const end = bytes.indexOf('\n');
      if (end < 0 && bytes.length < maxLineBytes) return;
      socket.pause();
      settle(end < 0 ? undefined : bytes.toString('utf8', 0, end));
      const rest = bytes.subarray(end + 1);
      if (end >= 0 && rest.length > 0) socket.unshift(rest);
    };
    socket.on('data', onData).on('close', onClose).on('end', onClose);
  });
}
