// The role of a process that serves in place of an earlier one: it takes its sockets over, gets signals from the head,
// and ends when the head has died. The pid that a service manager, a terminal and scripts have is that of the head. So
// signals to this process have no effect, but for USR2 and those that end it: a service manager sends those to all.

import { closeSync } from 'node:fs';
import { type Deferred, defer } from '../../../../lib/index.js';
import { dupFd, Predecessor } from '../../../../serve/index.js';
import { ControlSocket } from '../../../../worker/index.js';
import type { Notifier } from '../systemd.js';
import { closeSockets, type OwnServers } from './own-servers.js';
import {
  controlFd,
  failureOf,
  firstSocketFd,
  fromHeadOf,
  maxPassedFds,
  protocolVersion,
  type ToHead,
  type ToSuccessor,
  upgradeFailed,
} from './protocol.js';
import type { Role } from './role.js';

export class Successor implements Role {
  readonly isHead = false;
  readonly notifier: Notifier = {
    ready: (status) => this.#send({ type: 'notify', what: 'ready', status }),
    reloading: () => this.#send({ type: 'notify', what: 'reloading', status: '' }),
    stopping: () => this.#send({ type: 'notify', what: 'stopping', status: '' }),
  };
  readonly #handlers = new Map<string, () => void>();
  readonly #begun = defer<Predecessor>();
  #own: OwnServers | undefined;
  #predecessor: Predecessor | undefined;
  #control: ControlSocket | undefined;
  /** Time after which sockets that no program has are closed, in ms. */
  #limitMs = 0;
  /** Set while a client waits for the next successor. */
  #upgrade: Deferred<void> | undefined;
  #end: () => void = () => {};
  #isEnding = false;
  #hasFailed = false;

  begin(own: OwnServers, limitMs: number): Promise<Predecessor> {
    this.#own = own;
    this.#limitMs = limitMs;
    this.#control = new ControlSocket(controlFd);
    process.on('message', (value) => {
      const message = fromHeadOf(value);
      if (message !== undefined) this.#receive(message);
    });
    process.on('disconnect', () => this.#endOnce());
    this.#send({ type: 'hello', version: protocolVersion, limitMs });
    return this.#begun.promise;
  }

  onSignal(signal: NodeJS.Signals, handler: () => void): void {
    this.#handlers.set(signal, handler);
    process.on(signal, () => {});
  }

  onEnd(handler: () => void): void {
    this.#end = handler;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, this.#endOnce);
  }

  readonly #endOnce = (): void => {
    if (this.#isEnding || this.#hasFailed) return;
    this.#isEnding = true;
    this.#end();
  };

  serving(status: string): void {
    this.#send({ type: 'serving', status });
  }

  failed(error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#send({ type: 'failed', failure: failureOf(error) }, () => {
      if (process.connected) process.disconnect(); // else this process would stay
    });
  }

  upgrade(): Promise<void> {
    this.#upgrade ??= defer();
    this.#send({ type: 'upgrade' });
    return this.#upgrade.promise;
  }

  async settled(): Promise<void> {
    await this.#upgrade?.promise.catch(() => {});
  }

  async end(): Promise<number> {
    return 0;
  }

  endAtOnce(): void {}

  #send(message: ToHead, done: () => void = () => {}): void {
    if (process.connected) process.send?.(message, undefined, {}, done);
    else done();
  }

  #receive(message: ToSuccessor): void {
    switch (message.type) {
      case 'begin':
        this.#begin(message);
        break;
      case 'begun':
        if (this.#predecessor === undefined) break;
        this.#predecessor.leave();
        // A program may listen later, as after a reload.
        setTimeout(() => this.#predecessor?.close(), this.#limitMs).unref();
        break;
      case 'ring':
        this.#own?.ring();
        break;
      case 'signal':
        this.#handlers.get(message.signal)?.();
        break;
      case 'end':
        this.#endOnce();
        if (message.isAtOnce) this.#end();
        break;
      case 'handOver':
        void this.#handOver();
        break;
      case 'keep':
        this.#own?.keep();
        this.#upgrade?.reject(upgradeFailed(message.failure));
        this.#upgrade = undefined;
        break;
      case 'leave':
        void this.#own?.leave().then(() => this.#send({ type: 'left' }));
        this.#upgrade?.resolve();
        this.#upgrade = undefined;
        break;
    }
  }

  #begin({ pid, handover }: Extract<ToSuccessor, { type: 'begin' }>): void {
    try {
      const sockets = handover.sockets.map((socket, at) => {
        const given = firstSocketFd + at;
        try {
          return { ...socket, fd: dupFd(given) }; // programs do not inherit it
        } finally {
          closeSync(given);
        }
      });
      this.#predecessor = new Predecessor(pid, { ...handover, sockets });
      this.#begun.resolve(this.#predecessor);
    } catch (error) {
      this.#begun.reject(error);
    }
  }

  async #handOver(): Promise<void> {
    try {
      const handover = await this.#own?.handOver();
      if (handover === undefined) return;
      try {
        const fds = handover.sockets.map(({ fd }) => fd);
        for (let at = 0; at < fds.length; at += maxPassedFds) {
          this.#control?.send(fds.slice(at, at + maxPassedFds));
        }
      } finally {
        closeSockets(handover.sockets);
      }
      this.#send({ type: 'handedOver', handover });
    } catch (error) {
      this.#own?.keep();
      this.#send({ type: 'refused', failure: failureOf(error) });
    }
  }
}
