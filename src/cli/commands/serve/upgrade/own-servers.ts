// The servers of this process, as they go over to a successor.

import { closeSync } from 'node:fs';
import { CodedError, hasCode } from '../../../../errors.js';
import { messageOf } from '../../../../lib/index.js';
import { callNative, nativeProblem } from '../../../../native.js';
import {
  dupFd,
  type HandedSocket,
  type Handover,
  type Replacing,
  withoutTwins,
} from '../../../../serve/index.js';

/** A server that can hand its sockets over, in this process or in another one. */
export interface Current {
  /**
   * Returns the sockets, for the caller to close; then `keep` or `leave` follows, and nothing else changes before.
   * Rejects with a `CodedError`.
   */
  handOver(): Promise<Handover>;
  /** The successor does not start. */
  keep(error: unknown): void;
  /** The successor serves. Resolves when nothing here accepts any more. */
  leave(): Promise<void>;
}

export class OwnServers implements Current {
  readonly #servers: () => readonly Replacing[];
  readonly #others: () => readonly HandedSocket[];
  readonly #onLeave: () => Promise<void>;
  #releases: readonly (() => void)[] = [];
  /** Servers that were handed over at last. */
  #held: readonly Replacing[] = [];
  /** Resolves when what a successor has replaced is over. */
  over: Promise<unknown> = Promise.resolve();

  /** `others` are sockets besides those of the servers; `onLeave` is called as the servers begin to end. */
  constructor(
    servers: () => readonly Replacing[],
    others: () => readonly HandedSocket[],
    onLeave: () => Promise<void>,
  ) {
    this.#servers = servers;
    this.#others = others;
    this.#onLeave = onLeave;
  }

  async handOver(): Promise<Handover> {
    const problem = nativeProblem();
    if (problem !== undefined) {
      const message = `sockets are handed over by the native core only: ${problem.message}`;
      throw new CodedError('SERVE_UPGRADE_FAILED', message, { cause: problem });
    }
    const all = this.#servers();
    const held = await Promise.allSettled(all.map((server) => server.hold()));
    this.#releases = held.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    this.#held = all.filter((_, at) => held[at]?.status === 'fulfilled');
    const servers = this.#held;
    try {
      // One that is closed, beside others that serve, is started again by the successor.
      const failed = held.find(
        (each) =>
          each.status === 'rejected' &&
          (servers.length === 0 || !hasCode(each.reason, 'SERVE_CLOSED')),
      );
      if (failed?.status === 'rejected') throw failed.reason;
      const handed = servers.map((server) => server.handOut());
      const sockets = withoutTwins([...handed.flatMap((each) => each.sockets), ...this.#others()]);
      return { sockets: copiesOf(sockets), ports: handed.flatMap(({ ports }) => ports) };
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  keep(): void {
    this.#release();
  }

  async leave(): Promise<void> {
    const over: Promise<void>[] = [this.#onLeave()];
    const left = this.#held.map(
      (server) => new Promise<void>((resolve) => over.push(server.leave(resolve))),
    );
    this.over = Promise.allSettled(over);
    this.#release();
    await Promise.all(left);
  }

  ring(): void {
    for (const server of this.#servers()) server.ring();
  }

  #release(): void {
    for (const release of this.#releases) release();
    this.#releases = [];
  }
}

/** Duplicates the descriptors of all or none. */
function copiesOf(sockets: readonly HandedSocket[]): HandedSocket[] {
  const copies: HandedSocket[] = [];
  try {
    for (const socket of sockets)
      copies.push({ ...socket, fd: callNative(() => dupFd(socket.fd)) });
    return copies;
  } catch (error) {
    closeSockets(copies);
    const message = `a socket cannot be duplicated: ${messageOf(error)}`;
    throw new CodedError('SERVE_UPGRADE_FAILED', message, { cause: error });
  }
}

export function closeSockets(sockets: readonly HandedSocket[]): void {
  for (const { fd } of sockets) closeSync(fd);
}
