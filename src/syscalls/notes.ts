// Notes of a report for its readers: a sentence each.

import type { TraceMethod } from './methods.js';

export interface Circumstances {
  readonly method: TraceMethod;
  readonly isNode: boolean;
  /** True: in another PID namespace. */
  readonly isElsewhere: boolean;
  /** Number of the traced process, if it was no command and has ended. */
  readonly endedPid: number | undefined;
  /** True: counted by a library that is loaded into the command. */
  readonly isCountedInside: boolean;
  /** Reason for a missing library in a command that needs it. */
  readonly uncounted: string | undefined;
  /** Reason for which Node programs of a command count no requests. */
  readonly uncountedRequests: string | undefined;
  /** Threads and programs without a row in the library's counts. */
  readonly lost: number;
  /** True: the assembled programs had no more room for their counts. */
  readonly isFull: boolean;
  /** True: some threads got no record of their own. */
  readonly hasOthers: boolean;
  readonly refusedProcesses: number;
}

export function notesOn(what: Circumstances): string[] {
  const { method, endedPid, refusedProcesses } = what;
  const notes: string[] = [];
  if (!what.isNode) notes.push('This is no Node program: the roles of its threads are unknown.');
  if (what.isElsewhere) {
    notes.push('It runs in another PID namespace (a container): the numbers are those outside.');
  }
  if (endedPid !== undefined) notes.push(`Process ${endedPid} has ended while it was traced.`);
  if (what.hasOthers) {
    notes.push('There is room for 1,023 threads and programs: later ones are in "others".');
  }
  if (refusedProcesses > 0) {
    notes.push(
      `There is room for 4,096 processes at once: the calls of ${refusedProcesses} are not counted.`,
    );
  }
  if (method === 'counters' && what.isCountedInside) {
    notes.push(
      'Calls were counted in the C library: those of files, sockets, epoll, poll and mmap, and those by ' +
        'syscall(2). Its internal ones (futex, brk, clone) are missing, and so are fstat and similar ones.',
    );
  }
  if (what.lost > 0) {
    notes.push(`${what.lost} threads and programs had no room: their calls are missing.`);
  }
  if (what.isFull) {
    notes.push('There is room for 65,536 calls by thread and name: later ones are not counted.');
  }
  if (method === 'counters' && what.uncounted !== undefined) {
    notes.push(`Calls are not counted: ${what.uncounted}.`);
  }
  if (what.uncountedRequests !== undefined) {
    notes.push(`Requests are not counted: ${what.uncountedRequests}.`);
  }
  if (method === 'raw') {
    notes.push('Children with a life of less than a second may be missing.');
  }
  if (method !== 'ebpf') {
    notes.push(
      'User and system time are estimated by the clock of the kernel: for children that live for less ' +
        'than 4 ms (CGI) nearly all is booked as user time. The line of the machine is right.',
    );
  }
  return notes;
}
