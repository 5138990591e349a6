// What does a large file cost, sent by the kernel's own copying, against `send` on plain `http`?
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { micros, perSecond, runsOf } from '../lib/figures.js';
import { startServer } from '../serve/servers.js';
import { ensureWrk, runWrk } from '../serve/wrk.js';

const connections = 16;
const seconds = 3;
const sizes = { '1 MiB': 2 ** 20, '16 KiB': 2 ** 14 };
const contenders = ['manycore', 'send'];

export default {
  figures: { cpuPerMiB: micros('CPU per MiB'), perSecond: perSecond('MiB') },
  settings: Object.fromEntries(
    Object.keys(sizes).map((size) => [
      size,
      { says: `a file of ${size}, ${connections} connections` },
    ]),
  ),
  rounds: 10,
  deadlineMs: 60_000,
  runs: Object.keys(sizes).flatMap((setting) => runsOf(setting, contenders)),
  bars: [
    {
      says: 'static 1 MiB file, CPU per MiB against send on http',
      figure: 'cpuPerMiB',
      of: { setting: '1 MiB', contender: 'manycore' },
      against: runsOf('1 MiB', ['send']),
      atMost: 0.6,
    },
  ],
  async measure({ contender, setting, scale }) {
    ensureWrk();
    const root = mkdtempSync(join(tmpdir(), 'manycore-bench-'));
    try {
      writeFileSync(join(root, 'file.bin'), Buffer.alloc(sizes[setting], 7));
      const { port, cpuUs } = await startServer('plain', 'files.js', { ROOT: root, BY: contender });
      const url = `http://127.0.0.1:${port}/file.bin`;
      await runWrk(url, { connections, seconds: 1 });
      const before = cpuUs();
      const window = Math.max(1, Math.round(seconds * scale));
      const { requests } = await runWrk(url, { connections, seconds: window });
      const mib = (requests * sizes[setting]) / 2 ** 20;
      return { cpuPerMiB: (cpuUs() - before) / mib, perSecond: mib / window };
    } finally {
      rmSync(root, { recursive: true });
    }
  },
};
