// Load by wrk, which keeps its connections busy (a closed loop: no figure of it is a latency under a
// given load). It is installed where it is missing and `apt-get` may.
import { execFile, execFileSync } from 'node:child_process';
import { promisify } from 'node:util';

const unitsUs = { us: 1, ms: 1000, s: 1_000_000 };

export function ensureWrk() {
  try {
    execFileSync('wrk', ['--version'], { stdio: 'ignore' });
  } catch (error) {
    // `--version` prints and exits with 1.
    if (error.code !== 'ENOENT') return;
    execFileSync('apt-get', ['install', '-y', 'wrk'], { stdio: 'ignore' });
  }
}

/**
 * Loads `url` for some seconds; fails when a request was refused, cut off, or not answered by 2xx.
 * `toScript`: arguments of a script that `flags` name.
 */
export async function runWrk(url, { seconds, connections, flags = [], toScript = [] }) {
  const script = toScript.length > 0 ? ['--', ...toScript] : [];
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', ...flags, url, ...script];
  const { stdout } = await promisify(execFile)('wrk', args);
  const problem = /Socket errors:.*|Non-2xx.*/.exec(stdout)?.[0];
  if (problem !== undefined) throw new Error(problem);
  const requests = Number(/(\d+) requests in/.exec(stdout)?.[1]);
  return { requests, p50Us: microseconds(stdout, '50%'), p99Us: microseconds(stdout, '99%') };
}

function microseconds(report, percentile) {
  const [, number, unit] = new RegExp(`${percentile}\\s+([\\d.]+)(us|ms|s)`).exec(report) ?? [];
  return Number(number) * unitsUs[unit];
}
