// What systemd asks of a service: sockets that it opened (sd_listen_fds(3)) and words about the state
// (sd_notify(3)). Both are a few variables of the environment, which the programs that we start must not
// see again.

import { callNative, requireNative } from '../native.js';

const firstFd = 3;

/** The listening sockets that this process was started with. */
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

/** Says nothing where nobody listens. */
export function notifier(): Notifier {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: watchdogUs, WATCHDOG_PID: pid } = process.env;
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete process.env[name];
  const say = (...lines: string[]): void => {
    if (socket === undefined) return;
    // systemd that has gone is no reason to end.
    try {
      callNative(() => requireNative().sendDatagram(socket, lines.join('\n')));
    } catch {}
  };
  const monotonicUs = (): bigint => process.hrtime.bigint() / 1000n;
  const everyMs = Number(watchdogUs) / 1000 / 2;
  const isOurs = pid === undefined || Number(pid) === process.pid;
  if (everyMs > 0 && isOurs) setInterval(() => say('WATCHDOG=1'), everyMs).unref();
  return {
    ready: (status) => say('READY=1', `STATUS=${status}`, `MAINPID=${process.pid}`),
    reloading: () => say('RELOADING=1', `MONOTONIC_USEC=${monotonicUs()}`),
    stopping: () => say('STOPPING=1'),
  };
}
