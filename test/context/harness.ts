// A caller and a peer for the context part alone: functions and values go as bytes through the IPC pipe of a
// real child process. No pool, no channel; the messages are plain and only for these tests.

import { type ChildProcess, fork } from 'node:child_process';
import {
  captureSite,
  createExporter,
  createImporter,
  type Exporter,
  type Importer,
  joinStacks,
  receive,
  send,
} from '../../src/context/index.js';

export interface Definition {
  readonly id: number;
  readonly bytes: Uint8Array;
}

/** Message of the caller. */
export interface Request {
  readonly serial: number;
  readonly definitions: readonly Definition[];
  readonly id: number;
  readonly state: Uint8Array | undefined;
  readonly args: Uint8Array;
}

/** Message of the peer. */
export interface Reply {
  readonly serial: number;
  readonly definitions: readonly Definition[];
  readonly bytes: Uint8Array;
  readonly isError: boolean;
}

/** The definitions that the other side does not have yet; adds their ids to `sent`. */
export function unsent(exporter: Exporter, sent: Set<number>, ids: readonly number[]) {
  const fresh = ids.filter((id) => !sent.has(id));
  for (const id of fresh) sent.add(id);
  return fresh.map((id) => ({ id, bytes: exporter.definition(id) }));
}

export async function defineAll(
  importer: Importer,
  definitions: readonly Definition[],
): Promise<void> {
  for (const { id, bytes } of definitions) await importer.define(id, bytes);
}

/** One child process that runs the functions it receives. */
export class Peer {
  static readonly exporter: Exporter = createExporter({ ownsCode: true });
  readonly #child: ChildProcess;
  readonly #importer = createImporter({ exporter: Peer.exporter });
  readonly #sent = new Set<number>();
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #serial = 0;
  #order: Promise<unknown> = Promise.resolve();

  constructor(execArgv: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
    this.#child = fork(new URL('./harness-child.js', import.meta.url), [], {
      serialization: 'advanced',
      // The same as for a worker: loaders and flags of the caller, but not its inspector.
      execArgv: [...process.execArgv.filter((flag) => !flag.startsWith('--inspect')), ...execArgv],
      env: { ...process.env, ...env },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#child.on('message', (reply: Reply) => {
      this.#waiting.get(reply.serial)?.(reply);
      this.#waiting.delete(reply.serial);
    });
  }

  /** Runs `fn` in the child. Returns its result, or throws its error. */
  async run<A extends unknown[], R>(
    fn: (...args: A) => R | Promise<R>,
    ...args: A
  ): Promise<Awaited<R>> {
    const site = captureSite(this.run);
    const snapshot = Peer.exporter.exportFunction(fn);
    const values = Peer.exporter.exportValue(args, 'the arguments');
    const joint = Peer.exporter.exportJoint(fn, args, values.definitions.length > 0);
    const { id, state, definitions } = joint ?? snapshot;
    const given = joint === undefined ? values : Peer.exporter.exportValue([], 'no arguments');
    const ids = [...definitions, ...given.definitions];
    this.#serial += 1;
    const request: Request = {
      serial: this.#serial,
      definitions: unsent(Peer.exporter, this.#sent, ids),
      id,
      state,
      args: given.bytes,
    };
    const reply = await this.#send(request);
    // Definitions must be added in the order in which they were sent.
    const defined = this.#order.then(() => defineAll(this.#importer, reply.definitions));
    this.#order = defined.catch(() => {});
    await defined;
    const value = this.#importer.importValue(reply.bytes);
    if (reply.isError) {
      joinStacks(value, site, 'worker 1');
      throw value;
    }
    return value as Awaited<R>;
  }

  #send(request: Request): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(request.serial, resolve);
      this.#child.once('error', reject);
      this.#child.send(request, (error) => {
        if (error !== null) reject(error);
      });
      this.#child.removeListener('error', reject);
    });
  }

  // A callback of a class whose methods call run() captures the peer: in the peer there is none.
  [send](): null {
    return null;
  }

  static [receive](): object {
    return { run: () => Promise.reject(new Error('a peer has no peer')) };
  }

  close(): void {
    this.#child.disconnect();
  }
}
