// What do files and CGI programs in one server cost, against Apache's process models?
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { micros, perSecond, runsOf } from '../lib/figures.js';
import { apacheCommand, models } from '../serve/apache.js';
import { startCommand } from '../serve/servers.js';
import { ensureWrk, runWrk } from '../serve/wrk.js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const connections = 16;
const seconds = 3;
/** So long, because compiled code comes late where two loops share the requests: after 3 s, not 1. */
const warmSeconds = 4;
const pageBytes = 10 * 1024;
const shares = [0, 25, 50, 75, 100];
const ours = ['manycore-2x1', 'manycore-1x2'];
const contenders = [...Object.keys(models).map((model) => `apache-${model}`), ...ours];
const settingOf = (share) => `${share} % CGI`;

export default {
  figures: {
    perSecond: perSecond('requests'),
    cpuUs: micros('CPU per request without the programs'),
    p50Us: micros('p50'),
    p99Us: micros('p99'),
  },
  settings: Object.fromEntries(
    shares.map((share) => [
      settingOf(share),
      {
        says: `a file of 10 KiB, and so often a shell script instead, ${connections} connections that are kept`,
      },
    ]),
  ),
  rounds: 5,
  deadlineMs: 60_000,
  runs: shares.flatMap((share) => runsOf(settingOf(share), contenders)),
  bars: [],
  async measure({ contender, setting, scale }) {
    ensureWrk();
    // Apache's processes belong to another user, who has to find the files.
    const root = mkdtempSync(join(tmpdir(), 'manycore-bench-'));
    chmodSync(root, 0o755);
    try {
      for (const folder of ['files', 'programs']) mkdirSync(join(root, folder));
      writeFileSync(join(root, 'files/page.html'), 'x'.repeat(pageBytes));
      const program = join(root, 'programs/hello');
      writeFileSync(program, `#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nhello'\n`);
      chmodSync(program, 0o755);
      const { port, cpuUs: totalCpuUs } = await startCommand((free) =>
        commandOf(contender, root, free),
      );
      const load = (length) =>
        runWrk(`http://127.0.0.1:${port}/`, {
          connections,
          seconds: length,
          flags: ['-s', here('../serve/mix.lua')],
          toScript: [String(Number.parseInt(setting, 10))],
        });
      await load(warmSeconds);
      const before = totalCpuUs();
      const window = Math.max(1, Math.round(seconds * scale));
      const { requests, p50Us, p99Us } = await load(window);
      const cpuUs = (totalCpuUs() - before) / requests;
      return { perSecond: requests / window, cpuUs, p50Us, p99Us };
    } finally {
      rmSync(root, { recursive: true });
    }
  },
};

function commandOf(contender, root, port) {
  const [, model] = /^apache-(\w+)$/.exec(contender) ?? [];
  if (model !== undefined) return apacheCommand(model, root, port);
  const [, processes, loops] = /^manycore-(\d+)x(\d+)$/.exec(contender);
  return [
    ...[process.execPath, here('../../dist/bundle/main.js'), 'serve'],
    ...['-P', processes, '-L', loops, '--host', '127.0.0.1', '--port', String(port)],
    ...['--static', join(root, 'files'), '--cgi', join(root, 'programs')],
  ];
}
