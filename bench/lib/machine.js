// What the numbers were made on: without it a number says nothing.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import os from 'node:os';

/** `node` is the binary that the contenders run under, which need not be this process's own. */
export function describeMachine(node) {
  return {
    cpu: os.cpus()[0]?.model ?? 'unknown',
    cores: allowedCores().length,
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    kernel: `${os.type()} ${os.release()}`,
    node: execFileSync(node, ['--version'], { encoding: 'utf8' }).trim(),
    commit: git('rev-parse', '--short=12', 'HEAD'),
    isChanged: git('status', '--porcelain', '--untracked-files=no', '--', ':!bench/results') !== '',
    date: new Date().toISOString().slice(0, 16).replace('T', ' '),
    loadBefore: os.loadavg()[0],
  };
}

/** The cores that this process may use, as the kernel numbers them. */
export function allowedCores() {
  const status = readFileSync('/proc/self/status', 'utf8');
  const list = /^Cpus_allowed_list:\s+(\S+)/m.exec(status)?.[1] ?? '0';
  return list.split(',').flatMap((range) => {
    const [from, to = from] = range.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
}

function git(...args) {
  try {
    return execFileSync('git', args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return 'unknown';
  }
}
