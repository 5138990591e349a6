// The supervisor's side without the native core: handles over Node's own channel to each process, and a
// scoreboard that their messages fill. Placement is the kernel's, each loop has workers of its own, and a process
// that was stopped counts as blocked.

import { Duplex } from 'node:stream';
import { blockingThreads } from '../../blocking-pool/index.js';
import { overStream } from '../../channels/index.js';
import { CodedError } from '../../errors.js';
import { messageOf } from '../../lib/index.js';
import { nativeProblem } from '../../native.js';
import { grantedCores, startChild } from '../../worker/index.js';
import type { FilledServeOptions } from '../options.js';
import { maxStackBytes, StackWatch } from '../process/stack-watch.js';
import { type ArrivedEnvelope, parseFromProcess } from '../protocol.js';
import { boardAt, createBoard, type Row, rowsOf } from '../shared/board.js';
import type {
  ProcessSettings,
  Started,
  StartOptions,
  SupervisorSystem,
} from '../supervisor/system.js';
import { type AppSettings, processTicket } from '../tickets.js';
import { clockMs } from './clock.js';
import { ChildLink } from './ipc-link.js';
import { writeWords } from './rows.js';
import { PortableSocketOpener } from './socket-opener.js';

/** A loop that writes nothing for so long is blocked, in ms. */
const lateMs = 1000;
/** Descriptor of the stack thread's socket in the process; Node's channel is before it. */
const stackFd = 4;

export class PortableSystem implements SupervisorSystem {
  readonly rows: readonly (readonly Row[])[];
  readonly opener = new PortableSocketOpener();
  readonly workers = undefined;
  /** Time of each row's last writing by its loop, by `clockMs`. */
  readonly #writtenAt = new Map<Row, number>();

  /** Throws `NATIVE_MISSING` for options that need the native core. */
  constructor({ app, options }: ProcessSettings) {
    refuseNativeOptions(app, options);
    warnOnce();
    this.rows = rowsOf(createBoard(2 * options.maxProcesses, options.loops.max));
  }

  nowMs(): number {
    return clockMs();
  }

  /** There are no routers without the native core. */
  routersExhausted(): number {
    return 0;
  }

  /** Notes which loops are late: nothing has to be requested from the process. */
  ring(number: number): void {
    const nowMs = clockMs();
    for (const row of this.rows[number] ?? []) {
      const writtenAt = this.#writtenAt.get(row) ?? 0;
      const isLate = row.state === 'ready' && nowMs - writtenAt > lateMs;
      row.set(boardAt.pingedSince, isLate ? writtenAt : 0);
      if (row.state === 'ready') row.set(boardAt.idleWrittenAt, nowMs); // it was not stopped
    }
  }

  start(options: StartOptions): Started {
    const { serve, number, inherited, listener, onStack } = options;
    const { owner, processes, loops } = serve;
    const stdio = loops.max === 1 ? (['ipc', 'pipe'] as const) : (['ipc'] as const);
    const system = { kind: 'portable', processes: this.rows.length } as const;
    try {
      const child = startChild({
        entry: new URL('../process/serve-entry.js', import.meta.url),
        argument: processTicket(options, system, loops.max === 1 ? stackFd : undefined),
        stdio,
        uid: owner?.uid,
        gid: owner?.gid,
        blockingThreads: blockingThreads(grantedCores().count, processes.max),
        hasPipes: serve.onOutput !== undefined,
        inherited,
      });
      const link = new ChildLink(child, {
        ...listener,
        onEnvelope: (envelope) => {
          if (!this.#takeRows(number, envelope)) listener.onEnvelope(envelope);
        },
      });
      const pipe: unknown = child.stdio?.[stackFd];
      const stackWatch =
        pipe instanceof Duplex
          ? new StackWatch(overStream(pipe, maxStackBytes).channel, onStack)
          : undefined;
      return { child, link, stackWatch };
    } catch (error) {
      throw new CodedError('SERVE_START_FAILED', messageOf(error), { cause: error });
    }
  }

  /** Returns false for another message. */
  #takeRows(number: number, envelope: ArrivedEnvelope): boolean {
    if (envelope.loop !== undefined) return false;
    const message = parseFromProcess(envelope);
    if (message.type !== 'rows') return false;
    const rows = this.rows[number] ?? [];
    writeWords(rows, message.rows);
    const nowMs = clockMs();
    for (const row of rows) {
      const writtenAt = row.get(boardAt.idleWrittenAt);
      this.#writtenAt.set(row, writtenAt);
      // This process may have been late itself.
      if (nowMs - writtenAt <= lateMs) row.set(boardAt.pingedSince, 0);
    }
    return true;
  }

  async close(): Promise<void> {}
}

let hasWarned = false;

function warnOnce(): void {
  if (hasWarned) return;
  hasWarned = true;
  process.emitWarning(
    `the kernel places connections, and each loop has workers of its own: ${messageOf(nativeProblem())}`,
    { type: 'ManycoreWarning', code: 'NATIVE_MISSING' },
  );
}

/** Throws `NATIVE_MISSING`. */
function refuseNativeOptions(app: AppSettings, options: FilledServeOptions): void {
  const needed = {
    serverNames: app.serverNames.length > 0,
    sticky: options.sticky !== undefined,
    listenFds: options.listenFds.length > 0,
    'placement: reuseport': options.placement === 'reuseport',
    // A thread there has no access to the handles of its process.
    'loops: more than 1': process.platform === 'win32' && options.loops.max > 1,
  };
  for (const [name, isGiven] of Object.entries(needed)) {
    if (!isGiven) continue;
    const cause = nativeProblem();
    throw new CodedError(
      'NATIVE_MISSING',
      `${name} of serve needs the native core: leave it out, or install the core (${messageOf(cause)})`,
      { cause },
    );
  }
}
