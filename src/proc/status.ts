// The `status` file of a process: proc_pid_status(5).

import { textOf } from './text.js';

const bytesPerKib = 1024;

/** A memory size by the name of its line, in bytes; 0 without such a line. Also for smaps_rollup. */
export function bytesIn(text: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) * bytesPerKib;
}

/** Resident memory of a process, in bytes; 0 when it has ended. */
export function rssBytesOf(pid: number | undefined): number {
  return bytesIn(textOf(`/proc/${pid}/status`), 'VmRSS');
}

/** Descriptors that a process may have open; `undefined` when unlimited, unknown or ended. */
export function descriptorLimitOf(pid: number | undefined): number | undefined {
  const limit = /^Max open files\s+(\d+)/m.exec(textOf(`/proc/${pid}/limits`))?.[1];
  return limit === undefined ? undefined : Number(limit);
}

/** Bits of capabilities(7). */
const bits = { CAP_SYS_ADMIN: 21n, CAP_PERFMON: 38n, CAP_BPF: 39n } as const;

/** Capabilities that counting in the kernel needs and the process of this `status` lacks. */
export function missingTraceRights(status: string): ('CAP_BPF' | 'CAP_PERFMON')[] {
  const held = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`);
  const has = (name: keyof typeof bits): boolean => ((held >> bits[name]) & 1n) === 1n;
  if (has('CAP_SYS_ADMIN')) return [];
  return (['CAP_BPF', 'CAP_PERFMON'] as const).filter((name) => !has(name));
}
