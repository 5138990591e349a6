// Runs one measurement in a fresh process group and makes sure that nothing of it is left.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { allowedCores } from './machine.js';

const here = fileURLToPath(new URL('../..', import.meta.url));
const defaultDeadlineMs = 20_000;
const running = new Set();

/**
 * `{ figures }` or `{ error }`; never rejects. `run.from`: another clone to measure. A contender that has not answered at its deadline is
 * killed, with everything that it started.
 */
export function runFresh({ node, name, bench, run, scale }) {
  const { setting, from = here } = run;
  const contender = run.contender.replace(/ before$/, '');
  const one = join(from, 'bench/one.js');
  const flags = bench.nodeFlags ?? [];
  const command = [node, ...flags, one, name, setting, contender, String(scale)];
  const cores = bench.settings[setting].cores;
  if (cores !== undefined) {
    const list = allowedCores().slice(0, cores);
    command.unshift('taskset', '-c', list.join(','));
  }
  const deadlineMs = bench.deadlineMs ?? defaultDeadlineMs;
  return new Promise((resolve) => {
    // A group of its own, so that all its descendants end with it.
    const child = spawn(command[0], command.slice(1), {
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    });
    if (child.pid !== undefined) running.add(child.pid);
    let answer = '';
    let errors = '';
    const settle = (result) => {
      clearTimeout(timer);
      endGroup(child.pid);
      resolve(result);
    };
    const timer = setTimeout(() => {
      settle({ error: `no answer within ${deadlineMs / 1000} s, killed` });
    }, deadlineMs);
    child.on('error', (error) => settle({ error: `cannot start: ${error.message}` }));
    child.on('exit', (code, signal) => {
      const tail = errors.trim().split('\n').slice(-3).join(' | ');
      settle({ error: `ended early (${signal ?? `exit code ${code}`}) ${tail}`.trim() });
    });
    child.stderr.on('data', (text) => {
      errors = (errors + text).slice(-2000);
    });
    child.stdio[3].on('data', (text) => {
      answer += text;
      const end = answer.indexOf('\n');
      if (end !== -1) settle(shorten(JSON.parse(answer.slice(0, end))));
    });
  });
}

/** An error on one line that fits under a table; stack lines are not for there. */
function shorten({ error, ...result }) {
  if (error === undefined) return result;
  const lines = error.split('\n').map((line) => line.trim());
  const shown = lines.filter((line) => line !== '' && !line.startsWith('at ') && line !== '^');
  return { error: shown.join(' | ').slice(0, 400) };
}

/** Kills all running measurements: for Ctrl-C. */
export function endAll() {
  for (const pid of running) endGroup(pid);
}

function endGroup(pid) {
  if (pid === undefined || !running.delete(pid)) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // the whole group has ended already
  }
}
