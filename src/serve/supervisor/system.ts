// Needs of a supervisor from the system it runs on: with the native core (native/), and by Node alone (portable/).

import type { ChildProcess } from 'node:child_process';
import { nativeBinding } from '../../native.js';
import type { Inherited } from '../../worker/index.js';
import { NativeSystem } from '../native/supervisor-system.js';
import type { FilledServeOptions } from '../options.js';
import { PortableSystem } from '../portable/supervisor-system.js';
import type { StackWatch } from '../process/stack-watch.js';
import type { ToLoop, ToProcess } from '../protocol.js';
import type { Row } from '../shared/board.js';
import type { Predecessor } from '../shared/handover.js';
import type { Link, LinkListener } from '../shared/link.js';
import type { AppSettings } from '../tickets.js';
import type { Workers } from './shared-workers.js';
import type { SocketOpener } from './sockets.js';

export interface StartOptions {
  /** Number of the process in the scoreboard. */
  readonly number: number;
  /** Number of its own sockets among those that share a port (`Sockets.of`); that of the process it replaces. */
  readonly queue: number;
  /** Number of reloads before. */
  readonly generation: number;
  readonly app: AppSettings;
  readonly serve: FilledServeOptions;
  /** True: a loop that ends unrequested is started again in its process. */
  readonly restartsLoops: boolean;
  /** Default: of this process. */
  readonly inherited: Inherited | undefined;
  readonly listener: LinkListener;
  /** Called with each stack of a program in the main thread. */
  readonly onStack: (stack: string | undefined) => void;
}

export interface Started {
  /** Has no `pid` if the system has started none: `error` follows. */
  readonly child: ChildProcess;
  readonly link: Link<ToLoop | ToProcess>;
  /** Set when the program runs in the main thread. */
  readonly stackWatch: StackWatch | undefined;
}

export interface SupervisorSystem {
  /** The scoreboard, `[process][loop]`. */
  readonly rows: readonly (readonly Row[])[];
  readonly opener: SocketOpener;
  /** The workers that all loops share; missing where each loop has its own. */
  readonly workers: Workers | undefined;
  /** The clock of the scoreboard, in ms. */
  nowMs(): number;
  /** Times that a router of this process had no descriptor left for a connection. */
  routersExhausted(): number;
  /** Makes the process with this number write how long its loops slept, within some ms. */
  ring(number: number): void;
  /** Starts a process. Throws `SERVE_START_FAILED`. */
  start(options: StartOptions): Started;
  /** For a server whose processes have ended. */
  close(): Promise<void>;
}

/** Throws `NATIVE_MISSING` for options that need the native core. */
export function createSystem(
  settings: ProcessSettings,
  predecessor?: Predecessor,
): SupervisorSystem {
  return nativeBinding() === undefined
    ? new PortableSystem(settings)
    : new NativeSystem(settings, predecessor);
}

/** Settings that processes are started with. */
export interface ProcessSettings {
  readonly app: AppSettings;
  readonly options: FilledServeOptions;
  /** Default: of this process, whenever one is started. */
  readonly inherited: Inherited | undefined;
}
