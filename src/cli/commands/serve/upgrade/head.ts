// The role of the first process: it serves, and starts its own successor when it is asked to. Then it stays as the
// head: its pid is that of the server for service managers, pid files and scripts. It passes signals on, ends with
// the successor's exit code, and starts further successors, which are all its children.

import type { Handover } from '../../../../serve/index.js';
import type { Notifier } from '../systemd.js';
import { notifier } from '../systemd.js';
import { type Current, closeSockets, type OwnServers } from './own-servers.js';
import type { ToHead } from './protocol.js';
import type { Role } from './role.js';
import { originOfProcess, SuccessorProcess } from './successor-process.js';

export class Head implements Role {
  readonly #origin = originOfProcess();
  readonly notifier: Notifier = notifier();
  #own: OwnServers | undefined;
  /** The successor that serves; `undefined`: this process does. */
  #successor: SuccessorProcess | undefined;
  /** All that run: one that serves, one that starts, others that drain. */
  readonly #all = new Set<SuccessorProcess>();
  #attempt: Promise<void> | undefined;
  #leaving: Promise<unknown> = Promise.resolve();
  #isEnding = false;

  get isHead(): boolean {
    return this.#successor !== undefined;
  }

  async begin(own: OwnServers): Promise<undefined> {
    this.#own = own;
  }

  onSignal(signal: NodeJS.Signals, handler: () => void): void {
    const pass = (): void => {
      if (this.#successor === undefined) handler();
      else this.#successor.send({ type: 'signal', signal });
    };
    process.on(signal, () => {
      if (this.#attempt === undefined) pass();
      else void this.#attempt.then(pass, pass);
    });
  }

  onEnd(handler: () => void): void {
    process.on('SIGTERM', handler);
    process.on('SIGINT', handler);
  }

  serving(status: string): void {
    this.notifier.ready(status);
  }

  failed(): void {}

  upgrade(): Promise<void> {
    this.#attempt ??= this.#replace().finally(() => {
      this.#attempt = undefined;
    });
    return this.#attempt;
  }

  async #replace(): Promise<void> {
    const current: Current | undefined = this.#successor ?? this.#own;
    if (current === undefined || this.#isEnding) return;
    let next: SuccessorProcess;
    let status: string;
    try {
      next = this.#start(await current.handOver());
      status = await next.serving;
    } catch (error) {
      current.keep(error);
      throw error;
    }
    this.#successor = next;
    next.send({ type: 'begun' });
    const left = current.leave().then(() => next.send({ type: 'ring' }));
    this.#leaving = Promise.all([this.#leaving, left, this.#own?.over]);
    if (!this.#isEnding) this.notifier.ready(status);
  }

  /** Starts a successor with these sockets, and closes them here. Throws `SERVE_UPGRADE_FAILED`. */
  #start(handover: Handover): SuccessorProcess {
    try {
      const next: SuccessorProcess = new SuccessorProcess(this.#origin, handover, {
        onMessage: (message) => this.#receive(next, message),
      });
      this.#all.add(next);
      void next.exited.then((code) => this.#exited(next, code));
      return next;
    } finally {
      closeSockets(handover.sockets);
    }
  }

  /** Only the one that serves has a say: others start, or drain. */
  #receive(
    which: SuccessorProcess,
    message: Extract<ToHead, { type: 'upgrade' | 'notify' }>,
  ): void {
    if (which !== this.#successor) return;
    if (message.type === 'upgrade')
      void this.upgrade().catch(() => {}); // `keep` has the reason
    else if (message.what === 'ready') this.notifier.ready(message.status);
    else this.notifier[message.what]();
  }

  /** The one that serves may end while its own successor starts, which then serves in its place. */
  async #exited(which: SuccessorProcess, code: number): Promise<void> {
    this.#all.delete(which);
    await this.settled();
    if (which === this.#successor && !this.#isEnding) process.exit(code);
  }

  async settled(): Promise<void> {
    await this.#attempt?.catch(() => {});
  }

  async end(): Promise<number> {
    this.#isEnding = true;
    const all = [...this.#all];
    for (const each of all) each.send({ type: 'end', isAtOnce: false });
    const code = await (this.#successor?.exited ?? 0);
    await Promise.all([this.#leaving, ...all.map(({ exited }) => exited)]);
    return code;
  }

  endAtOnce(): void {
    for (const each of this.#all) each.send({ type: 'end', isAtOnce: true });
  }
}
