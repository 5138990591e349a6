// The supervisor's side of the native core: scoreboard in shared memory, a bell for each process, descriptors
// over a control socket.

import { blockingThreads } from '../../blocking-pool/index.js';
import { CodedError } from '../../errors.js';
import { messageOf } from '../../lib/index.js';
import {
  callNative,
  type NativeBoard,
  type NativeDescriptors,
  requireNative,
} from '../../native.js';
import { grantedCores, WiredProcess, type WireTicket } from '../../worker/index.js';
import { StackWatch } from '../process/stack-watch.js';
import { type Row, rowsOf } from '../shared/board.js';
import type { Predecessor } from '../shared/handover.js';
import { socketPort, WireLink } from '../shared/link.js';
import { Workers } from '../supervisor/shared-workers.js';
import type {
  ProcessSettings,
  Started,
  StartOptions,
  SupervisorSystem,
} from '../supervisor/system.js';
import { type ProcessTicket, processTicket } from '../tickets.js';
import { NativeSocketOpener } from './socket-opener.js';

export class NativeSystem implements SupervisorSystem {
  readonly rows: readonly (readonly Row[])[];
  readonly opener: NativeSocketOpener;
  readonly workers: Workers;
  readonly #board: NativeBoard;
  readonly #descriptors: NativeDescriptors;
  /** Both ends of the socket over which processes hand over connections of blocked loops; empty: they do not. */
  readonly #handoverFds: readonly number[];
  /** By number of the process. */
  readonly #bellFds: readonly number[];

  /** Throws `NATIVE_MISSING`, `NATIVE_REFUSED`. */
  constructor({ app, options, inherited }: ProcessSettings, predecessor?: Predecessor) {
    const native = requireNative();
    const numbers = 2 * options.maxProcesses;
    this.workers = new Workers(app.workers, { ...options, inherited });
    this.#board = callNative(() => native.NativeBoard.create(numbers, options.loops.max));
    const { placement, sticky } = options;
    const router = { names: app.serverNames, sticky, board: this.#board };
    this.opener = new NativeSocketOpener(placement === 'reuseport', router, predecessor);
    this.rows = rowsOf(this.#board.buffer());
    this.#descriptors = new native.NativeDescriptors();
    this.#handoverFds = options.rescue ? this.#descriptors.createSocketPair() : [];
    this.#bellFds = Array.from({ length: numbers }, () => this.#descriptors.createEventfd());
  }

  nowMs(): number {
    return requireNative().boardNowMs();
  }

  routersExhausted(): number {
    return requireNative().routersExhausted();
  }

  ring(number: number): void {
    requireNative().ringBell(this.#bellFds[number] ?? -1);
  }

  start(options: StartOptions): Started {
    let stackWatch: StackWatch | undefined;
    try {
      if (options.serve.loops.max === 1) stackWatch = StackWatch.overPair(options.onStack);
      const fds = [
        this.#board.fd(),
        this.workers.activeLeasesFd,
        ...this.#handoverFds,
        ...this.#bellFds,
      ];
      const { owner, processes } = options.serve;
      const { child, end } = new WiredProcess({
        entry: new URL('../process/serve-entry.js', import.meta.url),
        fds: stackWatch?.theirFd === undefined ? fds : [...fds, stackWatch.theirFd],
        ticket: (wire, givenFds) => this.#ticketOf(options, wire, givenFds),
        open: (channel, controlSocket) =>
          new WireLink(channel, socketPort(controlSocket), options.listener),
        uid: owner?.uid,
        gid: owner?.gid,
        blockingThreads: blockingThreads(grantedCores().count, processes.max),
        hasPipes: options.serve.onOutput !== undefined,
        inherited: options.inherited,
      });
      return { child, link: end, stackWatch };
    } catch (error) {
      stackWatch?.close();
      throw new CodedError('SERVE_START_FAILED', messageOf(error), { cause: error });
    } finally {
      stackWatch?.closeTheirEnd();
    }
  }

  #ticketOf(
    options: StartOptions,
    wire: WireTicket,
    [boardFd = -1, activeLeasesFd = -1, ...others]: readonly number[],
  ): ProcessTicket {
    const handoverFds = others.splice(0, this.#handoverFds.length);
    const bellFds = others.splice(0, this.#bellFds.length);
    const fds = { boardFd, activeLeasesFd, handoverFds, bellFds };
    return processTicket(options, { kind: 'native', ...wire, ...fds }, others[0]);
  }

  async close(): Promise<void> {
    await this.workers.close();
    this.#descriptors.closeAll();
    this.#board.close();
  }
}
