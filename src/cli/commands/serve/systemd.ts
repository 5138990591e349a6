// Protocols of systemd for a service: passed sockets (sd_listen_fds(3)) and notifications of its state
// (sd_notify(3)). Both use environment variables, which are removed, so that started programs do not get
// them.

import { callNative, nativeProblem, requireNative } from '../../../native.js';

const firstFd = 3;

/** Returns the listening sockets that this process was started with. */
export function listenFds(): number[] {
  const { LISTEN_PID: pid, LISTEN_FDS: count } = process.env;
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete process.env[name];
  if (Number(pid) !== process.pid) return [];
  return Array.from({ length: Number(count) || 0 }, (_, at) => firstFd + at);
}

export interface Notifier {
  ready(status: string): void;
  reloading(): void;
  stopping(): void;
}

/** Returns the notifier; it does nothing without a socket of systemd. */
export function notifier(): Notifier {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: watchdogUs, WATCHDOG_PID: pid } = process.env;
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete process.env[name];
  const problem = socket === undefined ? undefined : nativeProblem();
  const everyMs = Number(watchdogUs) / 1000 / 2;
  if (problem !== undefined) {
    const unwatched = everyMs > 0 ? ' without WatchdogSec' : '';
    process.emitWarning(`systemd gets no messages: ${problem.message}; use Type=exec${unwatched}`, {
      type: 'ManycoreWarning',
      code: problem.code,
    });
  }
  const maySend = socket !== undefined && problem === undefined;
  const say = (...lines: string[]): void => {
    if (!maySend) return;
    // Without systemd the server goes on.
    try {
      callNative(() => requireNative().sendDatagram(socket, lines.join('\n')));
    } catch {}
  };
  const monotonicUs = (): bigint => process.hrtime.bigint() / 1000n;
  const isOurs = pid === undefined || Number(pid) === process.pid;
  if (maySend && everyMs > 0 && isOurs) setInterval(() => say('WATCHDOG=1'), everyMs).unref();
  return {
    ready: (status) => say('READY=1', `STATUS=${status}`, `MAINPID=${process.pid}`),
    reloading: () => say('RELOADING=1', `MONOTONIC_USEC=${monotonicUs()}`),
    stopping: () => say('STOPPING=1'),
  };
}
