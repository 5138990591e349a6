// Which system calls do files and CGI programs in one server spend the kernel's time on, here and in Apache?
// Each figure is a share of the time that calls were on a core. Page faults and interrupts are no calls.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { runsOf } from '../lib/figures.js';
import { connections, settingOf, shares, withMix } from '../serve/mix.js';

const command = fileURLToPath(new URL('../../dist/bundle/main.js', import.meta.url));
const contenders = ['apache-worker', 'manycore-2x1'];
const seconds = 3;

/**
 * Purposes of requests, and their system calls. Calls that never return, such as exit_group, have no time.
 */
const groups = {
  programs: ['fork', 'vfork', 'clone', 'clone3', 'execve', 'wait4', 'waitid'],
  memory: ['mmap', 'munmap', 'mprotect', 'brk', 'madvise', 'mremap'],
  read: ['read', 'readv', 'pread64', 'recvfrom', 'recvmsg'],
  write: ['write', 'writev', 'pwrite64', 'sendto', 'sendmsg', 'sendfile', 'splice'],
  files: ['open', 'openat', 'close', 'stat', 'fstat', 'newfstatat', 'statx', 'lstat', 'access'],
  pipes: ['pipe', 'pipe2', 'socketpair', 'socket', 'connect', 'dup2', 'dup3', 'fcntl', 'ioctl'],
  events: ['epoll_wait', 'epoll_pwait', 'epoll_ctl', 'poll', 'futex', 'accept4'],
};
const says = {
  programs: 'fork, exec, wait',
  memory: 'mmap, brk',
  read: 'read',
  write: 'write, sendfile',
  files: 'open, stat, close',
  pipes: 'pipe, dup, fcntl',
  events: 'epoll, futex',
  others: 'others',
};
const share = (name) => ({ says: says[name], unit: '%', better: 'lower' });

export default {
  figures: {
    ...Object.fromEntries(Object.keys(says).map((name) => [name, share(name)])),
    callsPerRequest: { says: 'calls per request', unit: '', better: 'lower' },
  },
  settings: Object.fromEntries(
    shares.map((each) => [
      settingOf(each),
      { says: `a file of 10 KiB, and so often a shell script instead, ${connections} connections` },
    ]),
  ),
  rounds: 5,
  deadlineMs: 60_000,
  runs: shares.flatMap((each) => runsOf(settingOf(each), contenders)),
  bars: [],
  async measure({ contender, setting, scale }) {
    return await withMix(contender, setting, async ({ pid, load }) => {
      const window = Math.max(1, Math.round(seconds * scale));
      const [calls, { requests }] = await Promise.all([callsOf(pid, window), load(window)]);
      return { ...sharesOf(calls), callsPerRequest: countOf(calls) / requests };
    });
  },
};

/** Counts, in the kernel, the calls of a process and all its descendants. */
async function callsOf(pid, window) {
  const flags = ['trace', `${pid}`, '--method', 'ebpf', '--seconds', `${window}`, '--json'];
  const child = spawn(process.execPath, [command, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part) => {
    text += part;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`the trace ended with exit code ${code}`);
  return JSON.parse(text).calls;
}

const countOf = (calls) => calls.reduce((sum, { count }) => sum + count, 0);

function sharesOf(calls) {
  const all = calls.reduce((sum, { onCpuMs }) => sum + onCpuMs, 0);
  const shareOf = (isMeant) =>
    (100 * calls.filter(isMeant).reduce((sum, { onCpuMs }) => sum + onCpuMs, 0)) / all;
  const named = Object.entries(groups).map(([group, names]) => [
    group,
    shareOf(({ name }) => names.includes(name)),
  ]);
  const known = Object.values(groups).flat();
  return { ...Object.fromEntries(named), others: shareOf(({ name }) => !known.includes(name)) };
}
