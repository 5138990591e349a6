// The part of a process in the upgrades of a server: the first process stays its head, and each later one serves in
// place of the one before.

import type { Predecessor } from '../../../../serve/index.js';
import type { Notifier } from '../systemd.js';
import type { OwnServers } from './own-servers.js';

export interface Role {
  readonly notifier: Notifier;
  /** True: a successor serves in place of this process, which stays and passes signals on. */
  readonly isHead: boolean;
  /** Resolves with the server that this one replaces. `limitMs`: time that the start may need. */
  begin(own: OwnServers, limitMs: number): Promise<Predecessor | undefined>;
  /** Calls `handler` for a signal to this server. */
  onSignal(signal: NodeJS.Signals, handler: () => void): void;
  /** Calls `handler` to end this server, and again to end it at once. */
  onEnd(handler: () => void): void;
  /** All servers have started. */
  serving(status: string): void;
  failed(error: unknown): void;
  /** Starts a successor; resolves when it serves. Rejects with `SERVE_UPGRADE_FAILED`. */
  upgrade(): Promise<void>;
  /** Resolves when no successor starts. */
  settled(): Promise<void>;
  /** Ends successors; resolves with the exit code. */
  end(): Promise<number>;
  endAtOnce(): void;
}
