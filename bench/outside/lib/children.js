// Runs programs of the measurements, each in a process of its own with a deadline, a few at a time.
import { spawn } from 'node:child_process';

/**
 * Runs `command` and resolves with { stdout, stderr, code, signal, isLate }. After `timeoutMs` it is killed with
 * all its children, which are in its process group.
 */
export function runChild(command, args, { timeoutMs, env, cwd }) {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8').on('data', (text) => {
      output[name] += text;
    });
  }
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    killGroup(child.pid);
  }, timeoutMs);
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      killGroup(child.pid); // workers that outlive their parent would keep the pipes open
      child.once('close', () => resolve({ ...output, code, signal, isLate }));
    });
  });
}

function killGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // All of it has ended already.
  }
}

/** Calls `work` for each item, `count` at a time; resolves with the results in the order of the items. */
export async function inTurns(items, count, work) {
  const results = [];
  let next = 0;
  const line = async () => {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(items[index], index);
    }
  };
  await Promise.all(Array.from({ length: count }, line));
  return results;
}
