// `manycore serve`: the supervisor in the foreground. Signals are those of Apache and nginx: TERM and INT
// end the server once what it holds is answered, a second one at once; HUP and USR2 start every process
// anew; TTIN and TTOU serve from one process more or less.

import { subscribe } from 'node:diagnostics_channel';
import { existsSync, type FSWatcher, readFileSync, rmSync, watch, writeFileSync } from 'node:fs';
import { CodedError } from '../errors.js';
import {
  messageOf,
  type ServerBlockedMessage,
  type ServerLoopFailedMessage,
  type ServerLostMessage,
} from '../internal/index.js';
import { addressText, type ServedApp as Server, serve } from '../serve/index.js';
import { type ServedApp, type ServeFlags, type ServeSettings, servePlan } from './serve-plan.js';
import { listenFds, type Notifier, notifier } from './systemd.js';

export type { ServeFlags } from './serve-plan.js';

/** Resolves when the server listens. Throws what `servePlan` and `serve` throw. */
export async function serveApp(
  app: string | undefined,
  args: readonly string[],
  flags: ServeFlags,
): Promise<void> {
  const { apps, settings } = servePlan(app, args, flags);
  const command = new ServeCommand(apps);
  await command.start(settings);
}

class ServeCommand {
  readonly #apps: readonly ServedApp[];
  readonly #servers: Server[] = [];
  readonly #notifier: Notifier = notifier();

  constructor(apps: readonly ServedApp[]) {
    this.#apps = apps;
  }

  async start({ pidFile, reloadOnChange }: ServeSettings): Promise<void> {
    const fds = listenFds();
    try {
      for (const { app, options } of this.#apps) {
        const server = serve(app, { control: true, listenFds: fds, ...options });
        this.#servers.push(await server.catch((error: unknown) => this.#refuse(app, error)));
      }
      if (pidFile !== undefined) keepPidFile(pidFile);
    } catch (error) {
      await Promise.all(this.#servers.map((server) => server.close()));
      throw error;
    }
    for (const [at, server] of this.#servers.entries()) {
      this.#welcome(server, this.#apps[at]?.options.serverNames ?? []);
    }
    this.#heedSignals();
    if (reloadOnChange === true) this.#watchFolders();
    this.#notifier.ready(this.#size());
  }

  /** With its name, where there are several. */
  #refuse(app: string, error: unknown): never {
    if (this.#apps.length === 1 || !(error instanceof CodedError)) throw error;
    throw new CodedError(error.code, `${app}: ${error.message}`, { cause: error.cause });
  }

  #welcome(server: Server, names: readonly string[]): void {
    const whose = names.length === 0 ? '' : ` for ${names.join(' ')}`;
    for (const address of server.addresses) {
      console.log(`listening on ${addressText(address)}${whose}`);
    }
    if (server.statusPort !== undefined) console.log(`status on port ${server.statusPort}`);
    server.closed.catch((error: unknown) => {
      console.error(`manycore: ${messageOf(error)} (SERVE_FAILED)`);
      process.exitCode = 1;
    });
  }

  #size(): string {
    const count = this.#servers.reduce((sum, { pids }) => sum + pids.length, 0);
    return `serving from ${count} process${count === 1 ? '' : 'es'}`;
  }

  #heedSignals(): void {
    subscribe('manycore:server:blocked', tellBlocked);
    subscribe('manycore:server:lost', tellLost);
    subscribe('manycore:loop:failed', tellLoopFailed);
    process.on('SIGTERM', this.#end);
    process.on('SIGINT', this.#end);
    for (const signal of ['SIGHUP', 'SIGUSR2'] as const) process.on(signal, this.#reload);
    process.on('SIGTTIN', () => this.#grow(1));
    process.on('SIGTTOU', () => this.#grow(-1));
  }

  #isEnding = false;
  readonly #end = (): void => {
    if (this.#isEnding) this.#endAtOnce();
    this.#isEnding = true;
    this.#notifier.stopping();
    const lines = this.#servers.flatMap((server) => server.status());
    const open = lines.reduce((sum, { openConnections }) => sum + openConnections, 0);
    if (open > 0) console.log(`closing ${open} connections; once more ends them at once`);
    Promise.all(this.#servers.map((server) => server.close())).then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };

  #endAtOnce(): void {
    const pids = new Set(this.#servers.flatMap((server) => server.status().map(({ pid }) => pid)));
    for (const pid of pids) {
      if (pid !== undefined) process.kill(pid, 'SIGKILL');
    }
    process.exit(1);
  }

  readonly #reload = (): void => {
    this.#notifier.reloading();
    const reloaded = this.#servers.map((server) => server.reload());
    void this.#change(Promise.all(reloaded), () => 'reloaded');
  };

  /** Processes that there will be, while that is not so yet: signals come faster than processes. */
  readonly #wanted = new Map<Server, number>();

  #grow(count: number): void {
    const scaled = this.#servers.map(async (server) => {
      const wanted = (this.#wanted.get(server) ?? server.pids.length) + count;
      this.#wanted.set(server, wanted);
      await server.scale(wanted).finally(() => {
        if (this.#wanted.get(server) === wanted) this.#wanted.delete(server);
      });
    });
    void this.#change(Promise.all(scaled), () => this.#size());
  }

  async #change(work: Promise<unknown>, done: () => string): Promise<void> {
    try {
      await work;
      console.log(done());
    } catch (error) {
      if (this.#isEnding) return;
      console.error(`manycore: the server could not: ${messageOf(error)}`);
    }
    if (!this.#isEnding) this.#notifier.ready(this.#size());
  }

  /** Reloads once the files of a program have been quiet for a moment. */
  #watchFolders(): void {
    let timer: NodeJS.Timeout | undefined;
    for (const { folder } of this.#apps) {
      if (folder === undefined) continue;
      watchFolder(folder, () => {
        clearTimeout(timer);
        timer = setTimeout(this.#reload, quietMs);
      });
    }
  }
}

/** Editors and compilers write several times. */
const quietMs = 200;
/** What programs write, or what is installed while they run. */
const unwatched = /(^|[\\/])(node_modules|\.git)([\\/]|$)|\.(log|pid|sock)$|~$/;

function watchFolder(folder: string, onChange: () => void): FSWatcher {
  const watcher = watch(folder, { recursive: true, persistent: false }, (_event, file) => {
    if (file === null || !unwatched.test(file)) onChange();
  });
  watcher.on('error', (error) => {
    console.error(`manycore: ${folder} is not watched any more: ${messageOf(error)}`);
  });
  return watcher;
}

/** For init systems and scripts: holds our number as long as we run. */
function keepPidFile(path: string): void {
  try {
    writeFileSync(path, `${process.pid}\n`);
  } catch (cause) {
    const message = `the pid file cannot be written: ${messageOf(cause)}; name one that can`;
    throw new CodedError('OPTION_INVALID', message, { cause });
  }
  process.on('exit', () => {
    const isOurs = existsSync(path) && Number(readFileSync(path, 'utf8')) === process.pid;
    if (isOurs) rmSync(path);
  });
}

function tellBlocked(message: unknown): void {
  const { pid, loop, blockedMs, stack = '' }: Partial<ServerBlockedMessage> = Object(message);
  console.error(`manycore: loop ${loop} of process ${pid} is in one callback for ${blockedMs} ms`);
  if (stack !== '') console.error(stack);
}

function tellLoopFailed(message: unknown): void {
  const { pid, loop, why, stack }: Partial<ServerLoopFailedMessage> = Object(message);
  if (stack !== undefined) console.error(stack);
  console.error(`manycore: process ${pid} serves without loop ${loop}, which was to come (${why})`);
}

function tellLost(message: unknown): void {
  const { pid, why, stack, delayMs }: Partial<ServerLostMessage> = Object(message);
  if (stack !== undefined) console.error(stack);
  const then = delayMs === undefined ? 'no other is started' : `another starts in ${delayMs} ms`;
  const what = pid === undefined ? 'a new process failed' : `process ${pid} is lost`;
  console.error(`manycore: ${what} (${why}): ${then}`);
}
