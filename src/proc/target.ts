// A process that a command is to read: checks that it exists and that this user may read it. Each failure has
// an error of its own, with its way out.

import { readlinkSync } from 'node:fs';
import { CodedError } from '../errors.js';
import { hasEnded } from './stat.js';
import { readText, textOf } from './text.js';

export interface SeenProcess {
  readonly pid: number;
  /** The folder of the process in /proc. */
  readonly folder: string;
  /** True: it is in another PID namespace than this process, as in a container. */
  readonly isContained: boolean;
}

/** Finds the process with this number. Throws `PROCESS_GONE` and `PROCESS_OTHER_PID_NAMESPACE`. */
export function findProcess(pid: number): SeenProcess {
  const isThis = pid === process.pid;
  const folder = isThis ? '/proc/self' : `/proc/${pid}`;
  if (!isThis) checkProc(pid);
  const status = readText(`${folder}/status`);
  if (status === undefined) throw processGone(pid);
  const state = /^State:\s*(\S)/m.exec(status)?.[1] ?? '';
  if (hasEnded({ state })) throw processGone(pid);
  const numbers = /^NSpid:\s*(.*)$/m.exec(status)?.[1]?.split(/\s+/) ?? [];
  return { pid, folder, isContained: !isThis && numbers.length > 1 };
}

/** Throws in a PID namespace without a /proc of its own, whose numbers belong to other processes. */
function checkProc(pid: number): void {
  let numberHere = '';
  try {
    numberHere = readlinkSync('/proc/self');
  } catch {
    // There is no /proc.
  }
  if (numberHere === String(process.pid)) return;
  const message = `process ${pid} cannot be found, because /proc does not show the processes of this PID namespace: mount it, as unshare --mount-proc does`;
  throw new CodedError('PROCESS_OTHER_PID_NAMESPACE', message);
}

export function processGone(pid: number): CodedError {
  const message = `there is no process ${pid} here: it has ended, or has another number in this container; ps -e shows those that run`;
  return new CodedError('PROCESS_GONE', message);
}

/**
 * The error for a process that only its own user and root may read: `PROCESS_REFUSED`, or
 * `PROCESS_OTHER_PID_NAMESPACE` for a process in a container.
 */
export function processRefused(
  { pid, folder, isContained }: SeenProcess,
  cause?: unknown,
): CodedError {
  if (isContained) {
    const message = `process ${pid} runs in another PID namespace, which is closed to user ${process.getuid?.()}: run this inside of its container, or as root`;
    return new CodedError('PROCESS_OTHER_PID_NAMESPACE', message, { cause });
  }
  return new CodedError('PROCESS_REFUSED', `process ${pid} ${whyRefused(folder)}`, { cause });
}

/** The way out. Root with fewer capabilities, as in a container, is refused as well. */
function wayPast(status: string): string {
  const why = 'has rights that this one has not, or may not be dumped';
  if (process.geteuid?.() !== 0) return `${why}: do this as root`;
  const missing = capabilitiesOf(status) & ~capabilitiesOf(textOf('/proc/self/status'));
  if (missing === 0n) return `${why}: root may not look here, so do this outside of the container`;
  const has = (at: number): boolean => ((missing >> BigInt(at)) & 1n) === 1n;
  const names = capabilityNames.filter((_, at) => has(at)).map((name) => `CAP_${name}`);
  return `has capabilities that root lacks here (${names.join(', ')}): do this outside of the container, or with them`;
}

/** Names of capabilities, in the order of their numbers, from 0 on. */
const capabilityNames = (
  'CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE ' +
  'NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT ' +
  'SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE ' +
  'AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ ' +
  'PERFMON BPF CHECKPOINT_RESTORE'
).split(' ');

function capabilitiesOf(status: string): bigint {
  return BigInt(`0x${/^CapPrm:\s*([\da-f]+)$/m.exec(status)?.[1] ?? '0'}`);
}

function whyRefused(folder: string): string {
  const status = textOf(`${folder}/status`);
  const owner = /^Uid:\s*\d+\s+(\d+)/m.exec(status)?.[1] ?? 'unknown';
  if (owner === String(process.geteuid?.())) {
    return wayPast(status);
  }
  return `belongs to another user (number ${owner}): do this as that user, or as root`;
}
