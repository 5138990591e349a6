// Choice of the tracing method, and the grants that a better one needs. It checks conditions first and
// finally tries the method: only the kernel decides.

import { readlinkSync } from 'node:fs';
import { CodedError } from '../errors.js';
import { messageOf } from '../lib/index.js';
import { callNative, type NativeTracer, nativeBinding, nativeProblem } from '../native.js';
import { missingTraceRights, readText, textOf } from '../proc/index.js';

/** Methods from the best to the one that always works. */
export const traceMethods = ['ebpf', 'raw', 'counters'] as const;
export type TraceMethod = (typeof traceMethods)[number];

/** A better method than the chosen one, and why it is not used. */
export interface MissingMethod {
  readonly method: TraceMethod;
  readonly reason: string;
  readonly wayOut: string;
  /** Cost of granting it. */
  readonly cost: string;
}

/** The chosen method; `tracer` counts in the kernel, and is `undefined` for `counters`. */
export interface ChosenMethod {
  readonly method: TraceMethod;
  readonly tracer: NativeTracer | undefined;
  readonly missing: readonly MissingMethod[];
}

const grant =
  'run it as root (sudo), or give a copy of node that only you may run the two ' +
  '(sudo setcap cap_bpf,cap_perfmon=ep COPY) and trace with that';
const grantCost =
  'a process with CAP_BPF and CAP_PERFMON can read the memory of the kernel and of all programs';

/** Inode of the first PID namespace of the machine, whose numbers the kernel counts by. */
const firstPidNamespace = 'pid:[4026531836]';

/** The kernel's description of its structs, which compiled programs need. */
const btfPath = '/sys/kernel/btf/vmlinux';

/** Returns the known obstacle to counting in the kernel, without trying it. */
function findProblem(method: TraceMethod): Omit<MissingMethod, 'method'> | undefined {
  if (nativeBinding() === undefined) {
    const reason = nativeProblem()?.message ?? 'the native binary is missing';
    return { reason, wayOut: 'npm run build:native in the package', cost: 'nothing but the build' };
  }
  const lacking = missingTraceRights(textOf('/proc/self/status'));
  if (lacking.length > 0) {
    const are = lacking.length === 1 ? 'is' : 'are';
    return { reason: `${lacking.join(' and ')} ${are} missing`, wayOut: grant, cost: grantCost };
  }
  if (!hasOuterPids()) {
    return {
      reason: 'this is another PID namespace (a container), and the kernel counts by outer numbers',
      wayOut: 'run manycore trace outside, with the number that the process has there',
      cost: 'a shell on the machine itself',
    };
  }
  if (method === 'ebpf' && readText(btfPath) === undefined) {
    return {
      reason: `the kernel has no BTF (${btfPath})`,
      wayOut: 'boot a kernel built with CONFIG_DEBUG_INFO_BTF',
      cost: 'a few MB of kernel memory',
    };
  }
  return undefined;
}

/** Returns true when only counters work, which it tries out. */
export function hasOnlyCounters(wanted: TraceMethod | undefined): boolean {
  if (wanted !== undefined) return wanted === 'counters';
  return !works('raw') && !works('ebpf'); // the cheaper one first: usually both work, or none
}

function works(method: 'ebpf' | 'raw'): boolean {
  const started = tryMethod(method, [], []);
  if (!('tracer' in started)) return false;
  started.tracer.close();
  return true;
}

/** Returns true when process numbers here are those by which the kernel counts. */
export function hasOuterPids(): boolean {
  return pidNamespace() === firstPidNamespace;
}

export function pidNamespace(pid: number | 'self' = 'self'): string {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return '';
  }
}

/**
 * Starts the best method that works, or the requested one. Throws `TRACE_UNAVAILABLE` when that one does
 * not work.
 */
export function chooseMethod(
  wanted: TraceMethod | undefined,
  pids: readonly number[],
  perThreadNames: readonly string[],
): ChosenMethod {
  const missing: MissingMethod[] = [];
  for (const method of wanted === undefined ? traceMethods : [wanted]) {
    if (method === 'counters') return { method, tracer: undefined, missing };
    const started = tryMethod(method, pids, perThreadNames);
    if ('tracer' in started) return { method, tracer: started.tracer, missing };
    missing.push({ method, ...started });
  }
  const [{ method, reason, wayOut } = { method: wanted, reason: 'unknown', wayOut: '' }] = missing;
  throw new CodedError(
    'TRACE_UNAVAILABLE',
    `tracing by ${method} cannot work here: ${reason}; ${wayOut}, or omit --method`,
  );
}

function tryMethod(
  method: 'ebpf' | 'raw',
  pids: readonly number[],
  perThreadNames: readonly string[],
): { readonly tracer: NativeTracer } | Omit<MissingMethod, 'method'> {
  const problem = findProblem(method);
  const binding = nativeBinding();
  if (problem !== undefined) return problem;
  if (binding === undefined) return { reason: 'no binary', wayOut: 'build it', cost: 'the build' };
  try {
    return { tracer: callNative(() => binding.NativeTracer.start(method, pids, perThreadNames)) };
  } catch (error) {
    return {
      reason: `the kernel refuses it: ${messageOf(error)}`,
      wayOut: 'allow bpf(2) (a seccomp profile, or a locked-down kernel, forbids it)',
      cost: grantCost,
    };
  }
}
