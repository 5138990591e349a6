// Starts a worker in a sandbox: `manycore-enter run` makes control groups and stays outside, bubblewrap makes the
// namespaces, `manycore-enter enter` sets Landlock and seccomp, and becomes node. The worker's channel is a socket, so
// that it shares no memory with this process.
// Not here: the limits themselves (crates/enter), what may come back (context/decode/data-only.ts).

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { Duplex, type Readable } from 'node:stream';
import type { ChannelOffer } from '../../channels/index.js';
import type { CodedError } from '../../errors.js';
import { clearTimeout, defer, jsonOf, messageOf, ownOf, setTimeout } from '../../lib/index.js';
import { entryFile } from '../parent/entry-file.js';
import { afterOutput, listenToOutput, type OutputListener } from '../parent/output.js';
import type { WorkerTicket } from '../protocol.js';
import type { WorkerExit, WorkerHandle, WorkerOptions } from '../types.js';
import { type Binding, ownFiles, packageFilesAbove } from './files.js';
import { partitionTools, unavailable } from './layers.js';
import type { FilledSandbox } from './options.js';

/** Descriptors of `manycore-enter run`: the worker's channel, and the reasons of its end. */
const channelFd = 3;
const statusFd = 4;
const mib = 2 ** 20;
/** Threads of node and of its code; a process that the code starts has as many. */
const threadsPerProcess = 64;
/** The part of the memory that V8's old generation may have: the rest is for buffers and node itself. */
const heapShare = 0.75;
/** Exit code of `manycore-enter` for a step that failed. */
const refusedExitCode = 125;
/** Time in which `run` ends the partition and removes its groups, in ms. */
const killMs = 2000;
const user = '65534';
const home = '/tmp';

/** Starts the worker; a start that the system refuses is an exit with the error. Throws `PARTITION_UNAVAILABLE`. */
export function startSandbox(
  ticket: WorkerTicket,
  offer: ChannelOffer,
  options: WorkerOptions,
  sandbox: FilledSandbox,
): WorkerHandle {
  const { enter, bubblewrap } = partitionTools(sandbox.allow);
  const entry = entryFile();
  const bindings = [...ownFiles(entry), ...given(sandbox.read)];
  const node = [
    process.execPath,
    `--max-old-space-size=${heapMb(options, sandbox)}`,
    ...options.execArgv,
    entry,
    jsonOf({ ...ticket, isPartition: true }),
  ];
  const args = [
    'run',
    ...limits(sandbox),
    '--',
    bubblewrap,
    ...namespaces(sandbox),
    ...[...bindings, { from: enter, to: enter }].flatMap(({ from, to }) => ['--ro-bind', from, to]),
    ...given(sandbox.write).flatMap(({ from, to }) => ['--bind', from, to]),
    '--',
    enter,
    'enter',
    ...rights(sandbox, bindings),
    '--',
    ...node,
  ];
  const spawnOptions: SpawnOptions = {
    stdio: ['ignore', 'pipe', 'pipe', ...offer.stdio, 'pipe'],
    env: {},
    windowsHide: true,
  };
  const child = spawn(enter, args, ownOf(spawnOptions));
  child.unref();
  return new SandboxHandle(child, ticket.workerId, options, sandbox);
}

function heapMb({ maxHeapMb }: WorkerOptions, { memoryMb }: FilledSandbox): number {
  return maxHeapMb > 0 ? maxHeapMb : Math.floor(memoryMb * heapShare);
}

function limits({ memoryMb, maxProcesses, cpuPercent, allow }: FilledSandbox): string[] {
  if (allow.includes('no-cgroup')) return [...ofRun, '--no-cgroup'];
  const tasks = threadsPerProcess * (1 + maxProcesses);
  const values = { memory: memoryMb * mib, tasks, cpu: cpuPercent };
  return [
    ...ofRun,
    ...Object.entries(values).flatMap(([name, value]) => [`--${name}`, `${value}`]),
  ];
}

const ofRun = ['--parent', `${process.pid}`, '--status', `${statusFd}`, '--keep', `${channelFd}`];

function namespaces({ network, env, fileMb }: FilledSandbox): string[] {
  const variables = {
    ...env,
    HOME: home,
    PATH: '',
    TZ: Intl.DateTimeFormat().resolvedOptions().timeZone,
  };
  return [
    '--unshare-all',
    ...(network === 'host' ? ['--share-net'] : []),
    '--die-with-parent',
    '--new-session',
    ...['--uid', user, '--gid', user, '--hostname', 'partition', '--cap-drop', 'ALL'],
    '--clearenv',
    ...Object.entries(variables).flatMap(([name, value]) => ['--setenv', name, value]),
    ...['--proc', '/proc', '--dev', '/dev', '--size', `${fileMb * mib}`, '--tmpfs', home],
    ...['--chdir', home],
  ];
}

function rights(sandbox: FilledSandbox, bindings: readonly Binding[]): string[] {
  const { write, fileMb, maxProcesses, network, allow } = sandbox;
  return [
    ...['/proc', ...bindings.map(({ to }) => to)].flatMap((path) => ['--read', path]),
    ...[home, '/dev', ...write].flatMap((path) => ['--write', path]),
    ...['--file-bytes', `${fileMb * mib}`],
    ...(maxProcesses > 0 ? ['--fork'] : []),
    ...(network === 'host' ? ['--network'] : []),
    ...allow.filter((layer) => layer !== 'no-cgroup').map((layer) => `--${layer}`),
  ];
}

/** What the user's options name, and the files that say how its modules are written. */
function given(paths: readonly string[]): Binding[] {
  const all = paths.flatMap((path) => [path, ...packageFilesAbove(path)]);
  return [...new Set(all)].map((path) => ({ from: path, to: path }));
}

class SandboxHandle implements WorkerHandle {
  readonly kind = 'process';
  readonly pipe: Duplex | undefined;
  readonly exited: Promise<WorkerExit>;
  readonly #child: ChildProcess;
  #excess: Error | undefined;
  #killTimer: NodeJS.Timeout | undefined;

  constructor(child: ChildProcess, worker: number, options: WorkerOptions, sandbox: FilledSandbox) {
    this.#child = child;
    const stdio: readonly unknown[] = Array.isArray(child.stdio) ? child.stdio : [];
    const pipe = stdio[channelFd];
    this.pipe = pipe instanceof Duplex ? pipe : undefined;
    const status = textOf(stdio[statusFd]);
    const limit = new OutputLimit(sandbox.outputMb, () => this.#endFor(limit.error));
    const listener = limit.around(options.onOutput ?? printOutput);
    const output = listenToOutput(child.stdout, child.stderr, worker, listener);
    const { promise, resolve } = defer<WorkerExit>();
    this.exited = promise;
    child.once('error', (error) => {
      if (child.pid !== undefined) return;
      resolve({ exitCode: null, signal: null, error: unavailable(messageOf(error)) });
    });
    child.once('exit', (exitCode, signal) => {
      clearTimeout(this.#killTimer);
      afterOutput(output, () => {
        const error =
          this.#excess ?? refusal(exitCode, limit.lastError) ?? cause(status(), sandbox);
        resolve({ exitCode, signal, error });
      });
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  ref(): void {
    this.#child.ref();
  }

  terminate(): void {
    this.#child.kill('SIGTERM');
  }

  /** Only the process outside can remove the groups: it is asked first, and does not wait for anything. */
  kill(): void {
    this.#child.kill('SIGTERM');
    this.#killTimer ??= setTimeout(() => this.#child.kill('SIGKILL'), killMs);
    this.#killTimer.unref();
  }

  #endFor(reason: Error): void {
    this.#excess ??= reason;
    this.kill();
  }
}

/** Counts the output of a partition, and keeps the last line on stderr, which says why a start failed. */
class OutputLimit {
  readonly #limitMb: number;
  readonly #onExcess: () => void;
  #count = 0;
  lastError = '';

  constructor(limitMb: number, onExcess: () => void) {
    this.#limitMb = limitMb;
    this.#onExcess = onExcess;
  }

  get error(): Error {
    return new Error(`it wrote more than ${this.#limitMb} MiB of output (outputMb)`);
  }

  around(listener: OutputListener): OutputListener {
    return (text, from) => {
      const before = this.#count;
      this.#count += text.length;
      if (before > this.#limitMb * mib) return;
      if (from.stream === 'stderr') this.lastError = lastLine(text) ?? this.lastError;
      listener(text, from);
      if (this.#count > this.#limitMb * mib) this.#onExcess();
    };
  }
}

function lastLine(text: string): string | undefined {
  return text.split('\n').findLast((line) => line.trim() !== '');
}

/** All but tabs and ends of lines: a terminal obeys other control characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it finds
const controls = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

const printOutput: OutputListener = (text, { stream }) => {
  process[stream].write(text.replace(controls, '\ufffd'));
};

/** Returns a reader of what has come so far. */
function textOf(stream: unknown): () => string {
  let text = '';
  if (stream instanceof Duplex) {
    const from: Readable = stream;
    from.setEncoding('utf8').on('data', (more: string) => {
      text += more;
    });
    if ('unref' in stream && typeof stream.unref === 'function') stream.unref();
  }
  return () => text;
}

/** The reason of `manycore-enter` or bubblewrap, if the partition could not be made. */
function refusal(exitCode: number | null, line: string): CodedError | undefined {
  const isOfEnter = exitCode === refusedExitCode && line.startsWith('manycore-enter: ');
  const isOfBubblewrap = exitCode === 1 && line.startsWith('bwrap: ');
  return isOfEnter || isOfBubblewrap ? unavailable(line) : undefined;
}

/** The limit that the kernel has enforced by a kill. */
function cause(status: string, { memoryMb }: FilledSandbox): Error | undefined {
  if (!status.includes('memory\n')) return undefined;
  return new Error(`memory limit of ${memoryMb} MiB (memoryMb)`);
}
