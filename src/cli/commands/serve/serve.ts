// `manycore serve`: runs the supervisor in the foreground. Signals are those of Apache and nginx: TERM and
// INT drain and end the server, a second one ends it at once; HUP restarts every process; USR2 starts a successor of
// this process, which serves in its place (upgrade/); USR1 opens the logs again; TTIN and TTOU add or remove one
// process.

import { subscribe } from 'node:diagnostics_channel';
import { accessSync, constants, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { dirname, resolve } from 'node:path';
import { CodedError } from '../../../errors.js';
import {
  defer,
  messageOf,
  type ServerChangedMessage,
  type ServerListeningMessage,
} from '../../../lib/index.js';
import { type MetricsServer, openMetrics } from '../../../observe/index.js';
import {
  addressText,
  endpointKey,
  endpointSocket,
  fillServeOptions,
  type HandedSocket,
  type Predecessor,
  programStack,
  type ServeOptions,
  type ServedApp as Server,
  type StartingServer,
  startRenewable,
} from '../../../serve/index.js';
import { keepTo } from '../../../worker/index.js';
import { reportLosses } from '../../report-losses.js';
import { FolderWatcher } from './folder-watcher.js';
import { Logs } from './log.js';
import { inPlace } from './option-place.js';
import { reapOrphans } from './orphans.js';
import { Configuration } from './reload.js';
import { type ServedApp, type ServeFlags, type ServeSettings, servePlan } from './serve-config.js';
import { listenFds } from './systemd.js';
import { OwnServers, type Role, roleOfProcess } from './upgrade/index.js';

export type { ServeFlags } from './serve-config.js';

/** Resolves when the server listens. Rejects with the errors of `servePlan` and `serve`. */
export async function serveApp(
  app: string | undefined,
  args: readonly string[],
  flags: ServeFlags,
): Promise<void> {
  const role = roleOfProcess(); // first: it notes the environment
  try {
    const configuration = new Configuration(() => servePlan(app, args, flags));
    const { affinity = [] } = configuration.plan.settings;
    if (affinity.length > 0) keepTo(affinity);
    const command = new ServeCommand(configuration, role);
    await command.start(configuration.plan.settings);
  } catch (error) {
    role.failed(error);
    throw error;
  }
}

class ServeCommand {
  readonly #configuration: Configuration;
  readonly #apps: readonly ServedApp[];
  readonly #role: Role;
  readonly #starting: StartingServer[] = [];
  readonly #servers: Server[] = [];
  #metrics: HandedSocket[] = [];
  readonly #logs = new Logs();
  #watcher: FolderWatcher | undefined;
  /** Resolves when all servers listen. */
  readonly #started = defer<void>();
  #hasFailed = false;

  constructor(configuration: Configuration, role: Role) {
    this.#configuration = configuration;
    this.#apps = configuration.plan.apps;
    this.#role = role;
  }

  async start({ pidFile, reloadOnChange, metrics }: ServeSettings): Promise<void> {
    reapOrphans();
    this.#installSignalHandlers(); // some processes serve while others still start
    const own = new OwnServers(
      () => this.#starting.map(({ replacing }) => replacing),
      () => this.#metrics,
      () => this.#leave(),
    );
    const predecessor = await this.#role.begin(own, this.#startLimitMs());
    const fds = predecessor?.inheritedFds ?? listenFds();
    const listeners = this.#apps.map(({ log, accessLog }) => ({
      onOutput: log && this.#logs.listener(log),
      accessLog: accessLog && this.#logs.access(accessLog),
    }));
    const ownPidFile = predecessor === undefined ? pidFile : undefined; // the head has it
    if (ownPidFile !== undefined) checkPidFile(ownPidFile);
    // Watches first: a change during the load must not be lost.
    if (reloadOnChange === true) this.#watchFolders();
    let endpoint: MetricsServer | undefined;
    try {
      // First, so that a failure leaves nothing to close.
      if (metrics !== undefined) {
        const options = typeof metrics === 'number' ? { port: metrics } : metrics;
        const key = endpointKey('metrics', '', options);
        endpoint = await openMetrics(options, predecessor?.take(key)[0]?.fd);
        if (endpoint.fd !== undefined) this.#metrics = [endpointSocket(key, endpoint.fd)];
        this.#leaveMetrics = endpoint.leave;
      }
      await this.#configuration.checkPatterns();
      for (const at of this.#apps.keys()) {
        if (this.#isEnding) return;
        const given = { control: true, listenFds: fds, ...listeners[at] };
        const starting = this.#startOne(at, given, predecessor);
        this.#starting.push(starting);
        this.#servers.push(starting.server);
        await starting.started.catch((error: unknown) => this.#refuse(starting.server, error));
      }
      if (predecessor !== undefined) {
        for (const { replacing } of this.#starting) await replacing.answer();
      }
      if (ownPidFile !== undefined) keepPidFile(ownPidFile);
    } catch (error) {
      this.#role.failed(error);
      if (this.#isEnding) return;
      this.#hasFailed = true;
      await Promise.all(this.#servers.map((server) => server.close()));
      await endpoint?.close();
      this.#logs.close();
      throw error;
    }
    if (this.#isEnding) return;
    for (const [at, server] of this.#servers.entries()) {
      this.#printAddresses(server, this.#apps[at]?.options ?? {});
    }
    if (endpoint !== undefined) console.log(`metrics at ${endpoint.url}`);
    this.#role.serving(this.#size());
    this.#watcher?.endLoad();
    this.#started.resolve();
    const all = this.#servers.map(({ closed }) => closed);
    void Promise.allSettled(all).then(async () => {
      await own.over;
      await this.#role.settled();
      if (this.#role.isHead) this.#logs.close();
      else if (!this.#isEnding) process.exit();
    });
  }

  /** Time for all apps to start, one after the other, in ms. */
  #startLimitMs(): number {
    const limits = this.#apps.map(({ options: { startTimeoutMs } }) =>
      fillServeOptions({ startTimeoutMs }),
    );
    return limits.reduce((sum, { startTimeoutMs }) => sum + startTimeoutMs, 0);
  }

  #leaveMetrics: () => Promise<void> = async () => {};
  #hasLeft = false;

  /** A successor serves: nothing here begins any more. */
  async #leave(): Promise<void> {
    this.#hasLeft = true;
    this.#watcher?.close();
    await this.#leaveMetrics();
  }

  /** `own` are options of the command, which the app's own ones override. */
  #startOne(at: number, own: ServeOptions, predecessor: Predecessor | undefined): StartingServer {
    const configuration = this.#configuration;
    const renewal = configuration.renewalOf(at, own, {
      name: () => this.#servers[at]?.name ?? '',
      onRenewed: ({ folder }) => {
        if (folder !== undefined) this.#watcher?.add(folder);
      },
    });
    return startRenewable(configuration.startOf(at, own), renewal, {
      predecessor,
      upgrade: () => this.#upgrade(),
    });
  }

  /** Rethrows an error, with the name of its app when there are several; one of the file has its place. */
  #refuse({ name }: Server, error: unknown): never {
    const { file } = this.#configuration.plan;
    const isOfFile = file !== undefined && messageOf(error).includes(file);
    throw this.#apps.length === 1 || isOfFile ? error : inPlace(name, error);
  }

  #printAddresses(server: Server, { serverNames: names = [], status, health }: ServeOptions): void {
    const whose = names.length === 0 ? '' : ` for ${names.join(' ')}`;
    for (const address of server.addresses) {
      console.log(`listening on ${addressText(address)}${whose}`);
    }
    if (server.statusPort !== undefined) {
      console.log(`status at http://${hostOf(status)}:${server.statusPort}/`);
    }
    if (server.healthPort !== undefined) {
      console.log(`health at http://${hostOf(health)}:${server.healthPort}/readyz`);
    }
    server.closed.catch((error: unknown) => {
      console.error(`manycore: ${messageOf(error)} (SERVE_FAILED)`);
      process.exitCode = 1;
    });
  }

  #size(): string {
    return `serving from ${processes(this.#servers.flatMap(({ pids }) => pids).length)}`;
  }

  /** Prefix with the app of a message; empty for a single app. */
  #nameOf(message: unknown): string {
    const { name }: Partial<ServerChangedMessage> = Object(message);
    return this.#apps.length === 1 ? '' : `${name}: `;
  }

  #installSignalHandlers(): void {
    reportLosses('server');
    subscribe('manycore:server:reloaded', (message) => {
      console.log(`${this.#nameOf(message)}reloaded`);
    });
    subscribe('manycore:server:scaled', (message) => {
      const { pids = [] }: Partial<ServerChangedMessage> = Object(message);
      console.log(`${this.#nameOf(message)}serving from ${processes(pids.length)}`);
    });
    subscribe('manycore:server:listening', (message) => {
      const { address }: Partial<ServerListeningMessage> = Object(message);
      if (address !== undefined) {
        console.log(`${this.#nameOf(message)}listening on ${addressText(address)}`);
      }
    });
    this.#role.onEnd(this.#end);
    this.#role.onSignal('SIGHUP', this.#reload);
    this.#role.onSignal('SIGUSR1', () => this.#logs.reopen());
    this.#role.onSignal('SIGTTIN', () => void this.#grow(1));
    this.#role.onSignal('SIGTTOU', () => void this.#grow(-1));
    process.on('SIGUSR2', () => void this.#upgrade().catch(() => {}));
  }

  /** Starts a successor once all apps have started. Prints the failure, and rejects with `SERVE_UPGRADE_FAILED`. */
  async #upgrade(): Promise<void> {
    await this.#started.promise;
    if (this.#isEnding) return;
    try {
      await this.#role.upgrade();
    } catch (error) {
      const message = `the server was not upgraded, the old one serves on: ${messageOf(error)}`;
      if (!this.#isEnding) console.error(`manycore: ${message} (SERVE_UPGRADE_FAILED)`);
      throw error;
    }
  }

  #isEnding = false;
  readonly #end = (): void => {
    if (this.#isEnding) this.#endAtOnce();
    if (this.#hasFailed) return; // it ends by itself
    this.#isEnding = true;
    this.#role.notifier.stopping();
    const servers = this.#role.isHead ? [] : this.#servers; // else they have ended, or drain
    const lines = servers.flatMap((server) => server.status());
    const open = lines.reduce((sum, { openConnections }) => sum + openConnections, 0);
    if (open > 0)
      console.log(
        `closing ${open} connection${open === 1 ? '' : 's'}; once more ends them at once`,
      );
    Promise.all([this.#role.end(), ...servers.map((server) => server.close())]).then(
      ([code]) => process.exit(code),
      () => process.exit(1),
    );
  };

  #endAtOnce(): void {
    this.#role.endAtOnce();
    const pids = new Set(this.#servers.flatMap((server) => server.status().map(({ pid }) => pid)));
    for (const pid of pids) {
      if (pid !== undefined) process.kill(pid, 'SIGKILL');
    }
    if (!this.#role.isHead) process.exit(1); // a head ends with its successor
  }

  /** Reloads after the start: a signal that comes earlier waits for it. */
  readonly #reload = (): void => {
    void this.#started.promise.then(() => this.#reloadAll());
  };

  async #reloadAll(): Promise<void> {
    if (this.#isEnding) return;
    this.#role.notifier.reloading();
    const reloaded = this.#servers.map(async (server, at) => {
      await server.reload().catch((error: unknown) => {
        this.#printStack(at, error);
        this.#refuse(server, error);
      });
    });
    this.#watcher?.beginLoad();
    await this.#change('reload', Promise.all(reloaded));
    this.#watcher?.endLoad();
  }

  /** Target counts of processes while they are not reached: signals arrive faster than processes start. */
  readonly #wanted = new Map<Server, number>();

  /** Changes the size after the start. */
  readonly #grow = async (count: number): Promise<void> => {
    await this.#started.promise;
    if (this.#isEnding) return;
    const scaled = this.#servers.map(async (server, at) => {
      const wanted = (this.#wanted.get(server) ?? server.pids.length) + count;
      this.#wanted.set(server, wanted);
      try {
        await server.scale(wanted);
      } catch (error) {
        this.#printStack(at, error);
        throw error;
      } finally {
        if (this.#wanted.get(server) === wanted) this.#wanted.delete(server);
      }
    });
    await this.#change('scale', Promise.all(scaled));
  };

  /** Prints where the program has thrown, if that does not stand in the log of its app. */
  #printStack(at: number, error: unknown): void {
    if (this.#isEnding || this.#hasLeft || this.#apps[at]?.log !== undefined) return;
    const stack = programStack(error);
    if (stack !== undefined) console.error(stack);
  }

  async #change(what: string, work: Promise<unknown>): Promise<void> {
    try {
      await work;
    } catch (error) {
      if (this.#isEnding || this.#hasLeft) return;
      const code = error instanceof CodedError ? ` (${error.code})` : '';
      console.error(`manycore: the server did not ${what}: ${messageOf(error)}${code}`);
    }
    if (!this.#isEnding && !this.#hasLeft) this.#role.notifier.ready(this.#size());
  }

  /** Reloads when the files of a program have not changed for a moment. */
  #watchFolders(): void {
    const watcher = new FolderWatcher(this.#reload);
    for (const { folder } of this.#apps) {
      if (folder !== undefined) watcher.add(folder);
    }
    for (const file of this.#configuration.files) watcher.addFile(file);
    watcher.beginLoad();
    this.#watcher = watcher;
  }
}

/** Host of an address that is served, as in a URL. */
function hostOf(address: ServeOptions['status']): string {
  const host = typeof address === 'object' ? address.host : '127.0.0.1';
  return isIPv6(host) ? `[${host}]` : host;
}

/** Removes a file, or empties it when the folder is not writable. */
function removeOrEmpty(path: string): void {
  try {
    rmSync(path);
  } catch {
    writeFileSync(path, '');
  }
}

function processes(count: number): string {
  return `${count} process${count === 1 ? '' : 'es'}`;
}

/** Checks that the pid file is writable, before anything is started. */
function checkPidFile(path: string): void {
  try {
    accessSync(existsSync(path) ? path : dirname(resolve(path)), constants.W_OK);
  } catch (cause) {
    throw badPidFile(cause);
  }
}

function badPidFile(cause: unknown): CodedError {
  const message = `the pid file cannot be written: ${messageOf(cause)}; name one that can`;
  return new CodedError('OPTION_INVALID', message, { cause });
}

/** Writes the pid file for init systems and scripts, and removes it at exit. */
function keepPidFile(path: string): void {
  try {
    writeFileSync(path, `${process.pid}\n`);
  } catch (cause) {
    throw badPidFile(cause);
  }
  process.on('exit', () => {
    const isOurs = existsSync(path) && Number(readFileSync(path, 'utf8')) === process.pid;
    if (isOurs) removeOrEmpty(path);
  });
}
