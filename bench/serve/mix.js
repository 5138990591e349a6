// A server of files and CGI programs, ours or Apache's, or of files alone, nginx, and a load for it with a given share of requests for
// a program, in percent.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { apacheCommand } from './apache.js';
import { nginxCommand } from './nginx.js';
import { startCommand } from './servers.js';
import { ensureWrk, runWrk } from './wrk.js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
export const connections = 16;
/** Requests for a program, in percent. */
export const shares = [0, 25, 50, 75, 100];
export const settingOf = (share) => `${share} % CGI`;
/** Long enough for compiled code, which comes late where two loops share the requests: after 3 s, not 1. */
const warmSeconds = 4;
const pageBytes = 10 * 1024;

/**
 * Starts the server of a contender (`manycore-PROCESSESxLOOPS`, `apache-MODEL`, `nginx`) and warms it with the load of
 * a setting. Then calls `measure` with `{ pid, cpuUs, load }`; `load` takes whole seconds.
 */
export async function withMix(contender, setting, measure) {
  ensureWrk();
  // Apache's processes belong to another user, who must be able to read the files.
  const root = mkdtempSync(join(tmpdir(), 'manycore-bench-'));
  chmodSync(root, 0o755);
  try {
    for (const folder of ['files', 'programs']) mkdirSync(join(root, folder));
    writeFileSync(join(root, 'files/page.html'), 'x'.repeat(pageBytes));
    const program = join(root, 'programs/hello');
    writeFileSync(program, `#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nhello'\n`);
    chmodSync(program, 0o755);
    const { port, pid, cpuUs } = await startCommand((free) => commandOf(contender, root, free));
    const load = (seconds) =>
      runWrk(`http://127.0.0.1:${port}/`, {
        connections,
        seconds,
        flags: ['-s', here('mix.lua')],
        toScript: [String(Number.parseInt(setting, 10))],
      });
    await load(warmSeconds);
    return await measure({ pid, cpuUs, load });
  } finally {
    rmSync(root, { recursive: true });
  }
}

function commandOf(contender, root, port) {
  const [, model] = /^apache-(\w+)$/.exec(contender) ?? [];
  if (model !== undefined) return apacheCommand(model, root, port);
  if (contender === 'nginx') return nginxCommand(root, port);
  const [, processes, loops] = /^manycore-(\d+)x(\d+)$/.exec(contender);
  return [
    ...[process.execPath, here('../../dist/bundle/main.js'), 'serve'],
    ...['-P', processes, '-L', loops, '--host', '127.0.0.1', '--port', String(port)],
    ...['--static', join(root, 'files'), '--cgi', join(root, 'programs')],
  ];
}
