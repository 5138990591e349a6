// Usage of a process tree, read from /proc: CPU, memory, wake-ups. Linux only, like the bench.
import { readdirSync, readFileSync } from 'node:fs';

/** Every descendant of process `pid`, without itself. */
export function descendants(pid = process.pid) {
  const found = [];
  for (const thread of tasksOf(pid)) {
    const text = readText(`/proc/${pid}/task/${thread}/children`);
    for (const child of text.split(' ').filter(Boolean)) {
      found.push(Number(child), ...descendants(Number(child)));
    }
  }
  return found;
}

/** CPU time of this process and all its living descendants, in µs; kernel time included. */
export function treeCpuUs() {
  const own = process.cpuUsage();
  let total = own.user + own.system;
  for (const pid of descendants()) total += processCpuUs(pid);
  return total;
}

/** CPU time of one process: exact where the kernel keeps schedstat, else in ticks of 10 ms. */
export function processCpuUs(pid) {
  let totalNs = 0;
  for (const thread of tasksOf(pid)) {
    const text = readText(`/proc/${pid}/task/${thread}/schedstat`);
    if (text === '') return cpuTicks(pid) * 10_000;
    totalNs += Number(text.split(' ')[0]);
  }
  return totalNs / 1000;
}

/** User and system time of one process in clock ticks (1/100 s), as the kernel accounts it. */
export function cpuTicks(pid) {
  const text = readText(`/proc/${pid}/stat`);
  // The second field is the program's name in brackets and may hold spaces. utime and stime are fields 14 and
  // 15, which is 11 and 12 after it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

/** Clock ticks of all cores since the machine's start: user, system, soft interrupts, idle. proc_stat(5). */
export function machineTicks() {
  const [, user, nice, system, idle, iowait, irq, softirq] = readText('/proc/stat')
    .split('\n', 1)[0]
    .split(/\s+/)
    .map(Number);
  return { user: user + nice, system: system + irq, softirq, idle: idle + iowait };
}

/** Returns how often the threads of one process went to sleep voluntarily, and so were woken before. */
export function wakeups(pid) {
  let total = 0;
  for (const thread of tasksOf(pid)) {
    const text = readText(`/proc/${pid}/task/${thread}/status`);
    total += Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(text)?.[1] ?? 0);
  }
  return total;
}

/** Proportional set size of one process, in MiB: shared pages count by share. */
export function pssMiB(pid) {
  const text = readText(`/proc/${pid}/smaps_rollup`);
  const kib = /^Pss:\s+(\d+) kB/m.exec(text)?.[1];
  if (kib === undefined) throw new Error(`/proc/${pid}/smaps_rollup has no Pss`);
  return Number(kib) / 1024;
}

/** The same for this process and all its living descendants. */
export function treePssMiB() {
  return descendants().reduce((total, pid) => total + pssMiB(pid), pssMiB(process.pid));
}

function tasksOf(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return []; // it has just ended
  }
}

function readText(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
