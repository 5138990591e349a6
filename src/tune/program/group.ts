// A command in a process group of its own with all that it starts: the tuned program, or the load. The
// group is ended as a whole, by a signal and then by SIGKILL. Processes that have left the group are found
// in the process tree. When this process ends, the rest is killed, too.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { startOn } from '../../worker/index.js';
import { isRunning, type TreeProcess, treeOf } from './process-tree.js';

export interface GroupOptions {
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cores?: readonly number[] | undefined;
  /** True: the command is one line for the shell. */
  readonly isShell?: boolean;
  /** True: the process has an IPC channel (`child.send`). */
  readonly hasIpc?: boolean;
  /** Called with the output, which is dropped otherwise. */
  readonly onOutput?: (text: string) => void;
}

export interface GroupExit {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Error of the start. */
  readonly error?: Error;
}

/** Time to end after the signal, and period of the checks, in ms. */
const graceMs = 2000;
const goneMs = 5000;
const pauseMs = 5;
const keptErrorChars = 4096;

const running = new Set<Group>();
process.on('exit', () => {
  for (const group of running) group.killNow();
});

export class Group {
  readonly child: ChildProcess;
  readonly ended: Promise<GroupExit>;
  #errors = '';
  /** Processes of the last check. */
  #known: readonly TreeProcess[] = [];
  #hasEnded = false;

  constructor(options: GroupOptions) {
    this.child = start(options);
    running.add(this);
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(-keptErrorChars);
    });
    const { onOutput } = options;
    if (onOutput !== undefined) this.child.stdout?.setEncoding('utf8').on('data', onOutput);
    this.ended = new Promise((resolve) => {
      const settle = (exit: GroupExit): void => {
        this.#hasEnded = true;
        resolve(exit);
      };
      this.child.once('error', (error) => settle({ exitCode: null, signal: null, error }));
      // The output is read until then, but a child of the process may keep the pipe open for ever.
      this.child.once('exit', (exitCode, signal) => {
        const onClosed = (): void => settle({ exitCode, signal });
        this.child.once('close', onClosed);
        setTimeout(onClosed, closeMs).unref();
      });
    });
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The started process and its descendants; `[]` once it has ended. */
  get tree(): TreeProcess[] {
    const tree = this.child.pid === undefined ? [] : treeOf(this.child.pid);
    if (tree.length > 0) this.#known = tree;
    return tree;
  }

  /** The last line on stderr with information, or ''. */
  get lastOutput(): string {
    const lines = this.#errors.split('\n').map((line) => line.trim());
    const informative = lines.filter(
      (line) => line !== '' && !/^(at |Node\.js v|\^|-+ |\d+: 0x)/.test(line),
    );
    const error = informative.findLast((line) => /\b(error|fatal|cannot|fail)/i.test(line));
    return error ?? informative.at(-1) ?? '';
  }

  /** Resolves when no process of the group runs, or those that do cannot be ended. */
  async end(): Promise<void> {
    void this.tree; // while they can still be found
    this.#signal('SIGTERM');
    await waitUntil(() => !this.#runs, graceMs);
    this.killNow();
    await waitUntil(() => !this.#runs && !this.#known.some(isRunning), goneMs);
    running.delete(this);
    for (const stream of [this.child.stdout, this.child.stderr]) stream?.destroy();
    if (this.child.connected) this.child.disconnect();
  }

  /** Kills at once, when there is no time to wait. */
  killNow(): void {
    this.#signal('SIGKILL');
    for (const each of this.#known) if (isRunning(each)) kill(each.pid, 'SIGKILL');
  }

  /** True while the started process runs. */
  get #runs(): boolean {
    const { pid, exitCode, signalCode } = this.child;
    return pid !== undefined && exitCode === null && signalCode === null;
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.child.pid !== undefined) kill(-this.child.pid, signal);
  }
}

/** Time after the end in which the output may still be read, in ms. */
const closeMs = 500;

function start({ command, env, cores, isShell, hasIpc, onOutput }: GroupOptions): ChildProcess {
  const [file = '', ...args] = command;
  const options: SpawnOptions = {
    detached: true,
    shell: isShell === true,
    env: { ...process.env, ...env },
    stdio: [
      'ignore',
      onOutput === undefined ? 'ignore' : 'pipe',
      'pipe',
      ...(hasIpc === true ? (['ipc'] as const) : []),
    ],
  };
  return startOn(cores, () => spawn(file, args, options));
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // the process has ended already
  }
}

async function waitUntil(condition: () => boolean, deadlineMs: number): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (!condition() && performance.now() < end) await sleep(pauseMs);
}
