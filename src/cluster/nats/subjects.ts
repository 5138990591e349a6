// NATS subjects of addresses. An address keeps its dots and letters, so that permissions of a NATS server
// can name it: `manycore.send.prices.uk`. Characters that a subject may not contain are written as `%XX`.

import { CodedError } from '../../errors.js';

/** Servers refuse lines of more than 4,096 bytes (`max_control_line`), which contain two subjects. */
const maxBytes = 1024;

const plain = /^[\w-]$/;

/** Throws `OPTION_INVALID` for an address that is too long. */
export function tokensOf(address: string): string {
  let tokens = '';
  let isStart = true;
  for (const character of address) {
    if (character === '.' && !isStart) {
      tokens += '.';
      isStart = true;
      continue;
    }
    tokens += plain.test(character) ? character : escaped(character);
    isStart = false;
  }
  if (isStart) tokens = `${tokens.slice(0, -1)}%2E`; // the dot at the end
  if (tokens.length <= maxBytes) return tokens;
  const message = `an address of ${tokens.length} bytes cannot travel in a cluster: ${maxBytes} is the limit`;
  throw new CodedError('OPTION_INVALID', message);
}

function escaped(character: string): string {
  let text = '';
  for (const byte of Buffer.from(character)) {
    text += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return text;
}

/** Limit of cached addresses: programs may use a new one for every message. */
const maxCached = 4096;

/** The subjects of a cluster. */
export class Subjects {
  readonly #name: string;
  readonly #kept = new Map<string, string>();

  constructor(name: string) {
    this.#name = name;
  }

  /** Throws `OPTION_INVALID` for an address that is too long. */
  check(address: string): void {
    this.#tokensOf(address);
  }

  /** Caches the result: every message needs it. */
  #tokensOf(address: string): string {
    const known = this.#kept.get(address);
    if (known !== undefined) return known;
    const tokens = tokensOf(address);
    if (this.#kept.size >= maxCached) this.#kept.clear();
    this.#kept.set(address, tokens);
    return tokens;
  }

  /** Subject for one consumer of an address; its consumers are one queue group. */
  send(address: string): string {
    return `${this.#name}.send.${this.#tokensOf(address)}`;
  }

  /** Subject for all consumers of an address. */
  publish(address: string): string {
    return `${this.#name}.publish.${this.#tokensOf(address)}`;
  }

  /** Subject of the announcements of nodes. */
  get nodes(): string {
    return `${this.#name}.nodes`;
  }

  /** Subject of one node. */
  node(id: string): string {
    return `${this.#name}.node.${id}`;
  }

  /** Subject for one of the nodes with a free worker, which are a queue group. */
  get workers(): string {
    return `${this.#name}.workers`;
  }

  /** Subject of one end of a tunnel. */
  tunnel(id: string, end: string): string {
    return `${this.#name}.tunnel.${id}.${end}`;
  }
}
