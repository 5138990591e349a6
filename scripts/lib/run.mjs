// Child processes of the scripts: started in a group of their own, so that a time limit, or Ctrl-C, also ends
// all their descendants.
import { spawn } from 'node:child_process';

const groups = new Set();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    for (const pid of groups) killGroup(pid);
    process.kill(process.pid, signal);
  });
}

/**
 * Runs a command; `capture` collects its output instead of showing it. Never rejects: a missing command has
 * status 127, and one killed after `limitMs` has status 124. Resolves to `{ status, output, isTimedOut,
 * tookMs }`.
 */
export function run(command, args, { capture = false, env, cwd, limitMs } = {}) {
  const started = performance.now();
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      stdio: capture ? ['ignore', 'pipe', 'pipe'] : ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, ...env },
      cwd,
      detached: true,
    });
    const chunks = [];
    child.stdout?.on('data', (chunk) => chunks.push(chunk));
    child.stderr?.on('data', (chunk) => chunks.push(chunk));
    let isTimedOut = false;
    const timer = limitMs
      ? setTimeout(() => {
          isTimedOut = true;
          killGroup(child.pid);
        }, limitMs)
      : undefined;
    const finish = (status, extra = '') => {
      clearTimeout(timer);
      groups.delete(child.pid);
      resolve({
        status: isTimedOut ? 124 : status,
        output: Buffer.concat(chunks).toString() + extra,
        isTimedOut,
        tookMs: performance.now() - started,
      });
    };
    if (child.pid !== undefined) groups.add(child.pid);
    child.on('error', (error) => finish(127, `${error.message}\n`));
    child.on('close', (code) => {
      if (isTimedOut) killGroup(child.pid);
      finish(code ?? 1);
    });
  });
}

/** Resolves to true when `command` can be started. */
export async function hasCommand(command) {
  const { status } = await run(command, ['--version'], { capture: true });
  return status === 0;
}

function killGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // the process has exited already
  }
}
