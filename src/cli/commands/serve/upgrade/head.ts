// The role of the first process: it serves, and starts its own successor when it is asked to. Then it stays as the
// head: its pid is that of the server for service managers, pid files and scripts. It passes signals on, ends with
// the successor's exit code, and starts further successors, which are all its children.

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
    const handover = await current.handOver();
    let next: SuccessorProcess;
    let status: string;
    try {
      try {
        next = new SuccessorProcess(this.#origin, handover, { onMessage: this.#receive });
      } finally {
        closeSockets(handover.sockets);
      }
      this.#all.add(next);
      void next.exited.then((code) => this.#exited(next, code));
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

  readonly #receive = (message: Extract<ToHead, { type: 'upgrade' | 'notify' }>): void => {
    if (message.type === 'upgrade')
      void this.upgrade().catch(() => {}); // the successor reports it
    else if (message.what === 'ready') this.notifier.ready(message.status);
    else this.notifier[message.what]();
  };

  #exited(which: SuccessorProcess, code: number): void {
    this.#all.delete(which);
    if (which === this.#successor && !this.#isEnding) process.exit(code);
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
