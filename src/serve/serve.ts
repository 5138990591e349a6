// `serve(app, options)`: an unchanged program, or an app that it exports, on processes × event loops.

import { addSource } from '../agent/index.js';
import { hasCode } from '../errors.js';
import { announcements, messageOf } from '../lib/index.js';
import { grantedCores, type Inherited } from '../worker/index.js';
import { Control } from './control/control.js';
import type { LoopStatus } from './control/status.js';
import { nameOfProgram } from './name.js';
import {
  checkApp,
  type FilledServeOptions,
  fillServeOptions,
  laterRange,
  type Range,
  type ServeOptions,
} from './options.js';
import type { OutputLine } from './output/lines.js';
import { RecentLines } from './output/recent-lines.js';
import { programStack } from './process/program-stack.js';
import type { BoundAddress } from './protocol.js';
import { type Difference, type Running, renewed } from './renewal.js';
import { checkReloadAt, Schedule } from './schedule.js';
import {
  endpointKey,
  endpointSocket,
  type HandedSocket,
  type Handover,
  type Predecessor,
} from './shared/handover.js';
import type { Mesh } from './supervisor/mesh.js';
import { type Renewal, Supervisor, type SupervisorExtras } from './supervisor/supervisor.js';
import type { ProcessSettings } from './supervisor/system.js';
import type { AppSettings } from './tickets.js';

/** A server that runs. */
export interface ServedApp extends AsyncDisposable {
  /** See `ServeOptions.name`. */
  readonly name: string;
  /** Addresses of its listening sockets. */
  readonly addresses: readonly BoundAddress[];
  /** Process ids of the processes that serve. */
  readonly pids: readonly number[];
  /** Port of the status page; `undefined` without the option `status`. */
  readonly statusPort: number | undefined;
  /** Port for probes; `undefined` without the option `health`. */
  readonly healthPort: number | undefined;
  /** State of each loop, from the scoreboard. */
  status(): LoopStatus[];
  /** Starts every process anew; no request is lost. Rejects when the new ones fail: the old ones stay. */
  reload(): Promise<void>;
  /**
   * Changes the number of processes, or the range that follows the load; surplus processes finish their
   * requests and end.
   */
  scale(processes: number | Range): Promise<void>;
  /** Resolves after `close()`; rejects with `SERVE_FAILED` when processes end too often in a row. */
  readonly closed: Promise<void>;
  /** Finishes open requests, takes nothing new, and ends. */
  close(): Promise<void>;
}

/** Stats of a server, for readers in its supervisor's thread. */
export interface ServerStats {
  /** The path of its program. */
  readonly app: string;
  readonly addresses: readonly BoundAddress[];
  /** Processes that ended, or lost a loop, without having been asked to, or did not start. */
  readonly lostProcesses: number;
  readonly loops: readonly LoopStatus[];
}

/** Cores for each of the P × L pools that a program makes itself. */
function shareOf({ processes, loops }: FilledServeOptions): number {
  return Math.max(1, Math.floor(grantedCores().count / (processes.max * loops.max)));
}

/**
 * Serves the program at `app` from several processes and event loops; resolves when all of them
 * listen. Throws `OPTION_INVALID`, `NATIVE_MISSING` where an option needs the native core; rejects with
 * `SERVE_START_FAILED`, `SERVE_CONTROL_FAILED`.
 */
export async function serve(app: string | URL, options?: ServeOptions): Promise<ServedApp> {
  const { server, started } = startServing(app, options);
  await started;
  return server;
}

/** A server from its first moment on: some of its processes may serve while others start. */
export interface StartingServer {
  /** Reloads and changes of size wait for the start. */
  readonly server: ServedApp;
  /** Rejects as `serve`, and with `SERVE_CLOSED` when it is closed before. */
  readonly started: Promise<void>;
  readonly replacing: Replacing;
}

/** Steps by which another process takes over from a server that has started. */
export interface Replacing {
  /** Opens what answers for a server with a predecessor: control, status, probes. Rejects as `serve`. */
  answer(): Promise<void>;
  /** Waits for reloads and changes of size; none begins until the result is called. Rejects with `SERVE_CLOSED`. */
  hold(): Promise<() => void>;
  /** The sockets; they stay this server's. Throws `SERVE_UPGRADE_FAILED`. */
  handOut(): Handover;
  /** Ends like `close`, for a successor that serves. `onLeft`: nothing here accepts any more. */
  leave(onLeft: () => void): Promise<void>;
  /** The predecessor has left; the system may have woken it for a client of this server. */
  ring(): void;
}

export interface ServingExtras {
  /** The server that this one replaces. */
  readonly predecessor?: Predecessor | undefined;
  /** Starts a successor; rejects with `SERVE_UPGRADE_FAILED`. */
  readonly upgrade?: (() => Promise<void>) | undefined;
}

/** The program of a server, its options and its environment, at the start and at each reload. */
export interface Renewable {
  readonly app: string;
  readonly options: ServeOptions;
  readonly inherited: Inherited;
}

export interface StartingRenewal {
  /** Returns those for the new processes; a rejection refuses the reload. */
  readonly renew: () => Promise<Renewable>;
  /** Called when all processes have it. */
  readonly onRenewed: (difference: Difference) => void;
}

/** Begins what `serve` waits for. Throws `OPTION_INVALID`, `NATIVE_MISSING`. */
export function startServing(
  app: string | URL,
  options?: ServeOptions,
  extras?: ServingExtras,
): StartingServer {
  const filled = fillServeOptions(options);
  return startProgram(checkApp(app), filled, extras);
}

/** The same for a server whose options may be others at each reload. */
export function startRenewable(
  { app, options, inherited }: Renewable,
  { renew, onRenewed }: StartingRenewal,
  extras?: ServingExtras,
): StartingServer {
  const filled = fillServeOptions(options);
  let running: Running = { path: checkApp(app), options, filled, inherited };
  return startProgram(running.path, filled, {
    ...extras,
    inherited,
    renew: async () => {
      const next = await renew();
      const wanted = { ...next, path: checkApp(next.app) };
      const { running: after, difference } = renewed(running, wanted, filled.loops.max);
      if (after.filled.reloadAt !== running.filled.reloadAt) {
        await checkReloadAt(after.filled.reloadAt);
      }
      const onApplied = (): void => {
        running = after;
        onRenewed(difference);
      };
      return { running: after, onApplied };
    },
  });
}

type Programmed = Pick<Running, 'path' | 'filled'>;

/** The part of the settings that follows from the options. */
function appSettings({ path, filled }: Programmed): Omit<AppSettings, 'name' | 'workers'> {
  const { args, port, isPortGiven, host, unix, serverNames, maxConnections, tls } = filled;
  const listening = { port, isPortGiven, host, unix, serverNames, tls };
  const stickyCookie = filled.sticky?.kind === 'cookie' ? filled.sticky.name : undefined;
  const accessFormat = filled.accessLog?.format;
  const coresPerLoop = shareOf(filled);
  return { path, args, ...listening, stickyCookie, maxConnections, accessFormat, coresPerLoop };
}

interface ProgramExtras extends ServingExtras {
  /** Default: of this process. */
  readonly inherited?: Inherited;
  /** Called at each reload. */
  readonly renew?: () => Promise<{ readonly running: Running; readonly onApplied: () => void }>;
  /** With one the loops have channels to each other. */
  readonly mesh?: Mesh;
  readonly restarts?: SupervisorExtras['restarts'];
  readonly onLost?: SupervisorExtras['onLost'];
  readonly onStopped?: SupervisorExtras['onStopped'];
  /** Name of the program in the status. */
  readonly title?: string;
  /** Called by `manycore reload`, in place of replacing the processes. */
  readonly reloadCode?: () => Promise<void>;
}

/** Serves the program at `path`, as `serve`. */
export async function serveProgram(
  path: string,
  filled: FilledServeOptions,
  extras?: ProgramExtras,
): Promise<ServedApp> {
  const { server, started } = startProgram(path, filled, extras);
  await started;
  return server;
}

function startProgram(
  path: string,
  filled: FilledServeOptions,
  extras: ProgramExtras = {},
): StartingServer {
  const { mesh, title = path, predecessor, upgrade, inherited, renew, restarts, onLost } = extras;
  const { reloadCode, onStopped } = extras;
  const name = filled.name ?? nameOfProgram(title);
  const workers = grantedCores().count;
  const recent = filled.onOutput === undefined ? undefined : new RecentLines();
  const onOutput = (line: OutputLine): void => {
    recent?.add(line);
    filled.onOutput?.(line);
  };
  const settingsOf = (of: Programmed, given: Inherited | undefined): ProcessSettings => ({
    app: { ...appSettings(of), name, workers },
    options: { ...of.filled, onOutput: recent && onOutput },
    inherited: given,
  });
  const supervisor = new Supervisor(settingsOf({ path, filled }, inherited), {
    mesh,
    predecessor,
    restarts,
    onLost,
    onStopped,
  });
  let shownPath = title;
  const renewal = async (next: NonNullable<typeof renew>): Promise<Renewal> => {
    const { running, onApplied } = await next();
    return {
      settings: settingsOf(running, running.inherited),
      onApplied: () => {
        onApplied();
        shownPath = running.path;
        schedule.follow(running.filled.reloadAt).catch(() => {}); // its last time has just passed
      },
    };
  };
  const reload = () => supervisor.reload(renew && (() => renewal(renew)));
  const scale = async (processes: number | Range) =>
    await supervisor.scale(laterRange(processes, filled));
  const status = () => supervisor.status();
  const startedAtMs = Date.now();
  const control = new Control({
    status: () => ({
      pid: predecessor?.pid ?? process.pid,
      name,
      app: shownPath,
      startedAtMs,
      lostProcesses: supervisor.lostProcesses,
      addresses: supervisor.addresses,
      loops: status(),
    }),
    obstacles: () => supervisor.obstacles,
    reload: reloadCode ?? reload,
    scale,
    released: () => supervisor.released(),
    stop: () => close(),
    upgrade,
    output: recent,
  });
  const unregister = addSource('server', supervisor, (of): ServerStats => {
    const { addresses, lostProcesses } = of;
    return { app: shownPath, addresses, lostProcesses, loops: of.status() };
  });
  const schedule = new Schedule(() =>
    reload().catch((error: unknown) => {
      if (hasCode(error, 'SERVE_CLOSED')) return;
      const stack = recent === undefined ? programStack(error) : undefined; // else it is printed
      announcements.serverReloadFailed.publish({
        name,
        app: shownPath,
        why: messageOf(error),
        stack,
      });
    }),
  );
  const close = async (): Promise<void> => {
    schedule.close();
    unregister();
    control.close();
    await supervisor.close();
  };
  let statusPort: number | undefined;
  let healthPort: number | undefined;
  const { status: statusAt, health: healthAt } = filled;
  const keys = {
    status: statusAt && endpointKey('status', name, statusAt),
    health: healthAt && endpointKey('health', name, healthAt),
  };
  const givenFor = (key: string | undefined): number | undefined =>
    key === undefined ? undefined : predecessor?.take(key)[0]?.fd;
  const answer = async (): Promise<void> => {
    if (filled.control) await control.listenForUser();
    if (statusAt !== undefined) {
      statusPort = await control.listenForStatus(statusAt, givenFor(keys.status));
    }
    if (healthAt !== undefined) {
      healthPort = await control.listenForHealth(healthAt, givenFor(keys.health));
    }
  };
  const start = async (): Promise<void> => {
    try {
      // First, so that no process has to be ended when it fails.
      if (predecessor === undefined) await answer();
      await checkReloadAt(filled.reloadAt);
      await supervisor.start();
      await schedule.follow(filled.reloadAt);
    } catch (error) {
      await close();
      throw error;
    }
  };
  const ended = (): void => {
    schedule.close();
    unregister();
    control.end();
  };
  supervisor.closed.then(ended, ended);
  const server: ServedApp = {
    name,
    get addresses() {
      return supervisor.addresses;
    },
    get pids() {
      return supervisor.pids;
    },
    get statusPort() {
      return statusPort;
    },
    get healthPort() {
      return healthPort;
    },
    status,
    reload,
    scale,
    closed: supervisor.closed,
    close,
    [Symbol.asyncDispose]: close,
  };
  const handOut = (): Handover => {
    const fds = control.endpointFds;
    const endpoints = (['status', 'health'] as const).flatMap((what): HandedSocket[] => {
      const [key, fd] = [keys[what], fds[what]];
      return key === undefined || fd === undefined ? [] : [endpointSocket(key, fd)];
    });
    const ports = [...supervisor.chosenPorts].map(([query, port]) => ({ name, query, port }));
    return { sockets: [...supervisor.handOut(), ...endpoints], ports };
  };
  const leave = async (onLeft: () => void): Promise<void> => {
    unregister();
    await Promise.all([control.leave(), supervisor.leave(onLeft)]);
  };
  const replacing = {
    answer,
    hold: () => supervisor.hold(),
    handOut,
    leave,
    ring: () => supervisor.ring(),
  };
  return { server, started: start(), replacing };
}
