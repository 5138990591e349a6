// A successor, as the head sees it: a process with the command line, the environment and the folder of the head, and
// with the sockets of the server that it replaces.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { resolve as resolvePath } from 'node:path';
import { CodedError } from '../../../../errors.js';
import { type Deferred, defer, exitCodeOf, messageOf, ownOf } from '../../../../lib/index.js';
import { callNative, requireNative } from '../../../../native.js';
import type { Handover } from '../../../../serve/index.js';
import { ControlSocket } from '../../../../worker/index.js';
import type { Current } from './own-servers.js';
import {
  failureOf,
  fromSuccessorOf,
  protocolVersion,
  successorVariable,
  type ToHead,
  type ToSuccessor,
  upgradeFailed,
} from './protocol.js';

/** Time for a process to load the command, in ms. */
const helloMs = 30_000;
/** Time beyond the start timeouts of its programs, in ms. */
const spareMs = 5000;

/** Program, arguments, environment and folder with which the head was started. */
export interface Origin {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly folder: string;
}

/** Variables of systemd, whose messages go to the head. */
const ofHead = [
  'LISTEN_PID',
  'LISTEN_FDS',
  'LISTEN_FDNAMES',
  'NOTIFY_SOCKET',
  'WATCHDOG_USEC',
  'WATCHDOG_PID',
];

/** Notes how this process was started, before anything of that changes. */
export function originOfProcess(): Origin {
  const env = { ...process.env };
  for (const name of ofHead) delete env[name];
  const { argv0, execPath, execArgv, argv } = process;
  // `execPath` has no links any more: one that leads to another version meanwhile would have no effect.
  const program = argv0.includes('/') ? resolvePath(argv0) : execPath;
  return { program, args: [...execArgv, ...argv.slice(1)], env, folder: process.cwd() };
}

export interface SuccessorEvents {
  /** Called for requests and notifications of a successor. */
  readonly onMessage: (message: Extract<ToHead, { type: 'upgrade' | 'notify' }>) => void;
}

export class SuccessorProcess implements Current {
  /** Resolves with its exit code. */
  readonly exited: Promise<number>;
  /** Resolves with its status when it serves; rejects with `SERVE_UPGRADE_FAILED`, once it has ended. */
  readonly serving: Promise<string>;
  readonly #child: ChildProcess;
  readonly #control: ControlSocket;
  readonly #handover: Handover;
  readonly #events: SuccessorEvents;
  readonly #serving = defer<string>();
  readonly #left = defer<void>();
  #handingOver: Deferred<Handover> | undefined;
  /** True: what comes over the control socket may belong to an earlier message. */
  #isBroken = false;
  #failure: CodedError | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** The descriptors of `handover` stay the caller's. Throws `SERVE_UPGRADE_FAILED`. */
  constructor(origin: Origin, handover: Handover, events: SuccessorEvents) {
    this.#handover = handover;
    this.#events = events;
    this.serving = this.#serving.promise;
    this.serving.catch(() => {}); // for a head that ends
    const descriptors = new (requireNative().NativeDescriptors)();
    try {
      const [ours = -1, theirs = -1] = callNative(() => descriptors.createSocketPair());
      this.#control = new ControlSocket(callNative(() => descriptors.release(ours)));
      const fds = handover.sockets.map(({ fd }) => fd);
      const options: SpawnOptions = {
        cwd: origin.folder,
        env: ownOf({ ...origin.env, [successorVariable]: '1' }),
        stdio: ['inherit', 'inherit', 'inherit', 'ipc', theirs, ...fds],
        detached: true, // a Ctrl-C at the terminal is for the head
      };
      this.#child = spawn(origin.program, origin.args, ownOf(options));
    } catch (error) {
      throw new CodedError('SERVE_UPGRADE_FAILED', notStarted(error), { cause: error });
    } finally {
      descriptors.closeAll();
    }
    this.exited = new Promise((resolve) => {
      this.#child.once('error', (error) => {
        this.#failure ??= upgradeFailed({ message: notStarted(error) });
        if (this.#child.pid === undefined) resolve(1);
      });
      this.#child.once('exit', (code, signal) => {
        const how = signal === null ? `ended with exit code ${code}` : `was killed by ${signal}`;
        this.#failure ??= upgradeFailed({ message: `its successor ${how} before it served` });
        resolve(exitCodeOf(code, signal));
      });
    });
    void this.exited.then(() => this.#ended());
    this.#child.on('message', (value) => {
      const message = fromSuccessorOf(value);
      if (message !== undefined) this.#receive(message);
    });
    this.#limit(helloMs);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  send(message: ToSuccessor): void {
    if (this.#child.connected) this.#child.send(message, () => {}); // its end is reported elsewhere
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  handOver(): Promise<Handover> {
    if (this.#isBroken) {
      const message = 'descriptors of an earlier upgrade are on their way: restart the server';
      return Promise.reject(upgradeFailed({ message }));
    }
    const handingOver = defer<Handover>();
    this.#handingOver = handingOver;
    this.send({ type: 'handOver' });
    return handingOver.promise;
  }

  keep(error: unknown): void {
    this.send({ type: 'keep', failure: failureOf(error) });
  }

  leave(): Promise<void> {
    this.send({ type: 'leave' });
    return this.#left.promise;
  }

  /** It ends when it does not serve within this time. */
  #limit(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#failure ??= upgradeFailed({ message: `its successor did not serve within ${ms} ms` });
      this.kill();
    }, ms);
  }

  #receive(message: ToHead): void {
    switch (message.type) {
      case 'hello':
        this.#welcome(message);
        break;
      case 'serving':
        clearTimeout(this.#timer);
        this.#serving.resolve(message.status);
        break;
      case 'failed':
        clearTimeout(this.#timer); // it finishes requests that it has
        this.#failure = upgradeFailed(message.failure);
        break;
      case 'handedOver':
        this.#handedOver(message.handover);
        break;
      case 'refused':
        this.#handingOver?.reject(upgradeFailed(message.failure));
        break;
      case 'left':
        this.#left.resolve();
        break;
      case 'upgrade':
      case 'notify':
        this.#events.onMessage(message);
        break;
    }
  }

  #welcome({ version, limitMs }: Extract<ToHead, { type: 'hello' }>): void {
    if (version !== protocolVersion) {
      this.#failure = upgradeFailed({
        message: `its successor is a version of manycore that cannot take over from this one: restart the server`,
      });
      this.kill();
      return;
    }
    this.#limit(limitMs + spareMs);
    this.send({ type: 'begin', pid: process.pid, handover: this.#handover });
  }

  /** Takes the descriptors, which have arrived before the message. */
  #handedOver(handover: Handover): void {
    const fds: number[] = [];
    try {
      while (fds.length < handover.sockets.length) fds.push(...this.#control.receive());
      const sockets = handover.sockets.map((socket, at) => ({ ...socket, fd: fds[at] ?? -1 }));
      this.#handingOver?.resolve({ ...handover, sockets });
    } catch (error) {
      for (const fd of fds) closeSync(fd);
      this.#isBroken = true;
      this.#handingOver?.reject(upgradeFailed({ message: messageOf(error) }));
    }
  }

  #ended(): void {
    clearTimeout(this.#timer);
    this.#control.close();
    this.#left.resolve();
    const failure = this.#failure ?? upgradeFailed({ message: 'its successor ended' });
    this.#serving.reject(failure);
    this.#handingOver?.reject(upgradeFailed({ message: 'the server ended' }));
  }
}

function notStarted(error: unknown): string {
  return `its successor cannot be started: ${messageOf(error)}`;
}
