// What do CGI programs cost a server with much memory, against child_process.spawn?
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { counted, perSecond, runsOf } from '../lib/figures.js';
import { startServer } from '../serve/servers.js';

const contenders = ['manycore', 'spawn'];
const seconds = 3;
const clients = 4;
const largeMiB = 256;
const programs = {
  small: `#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nhello'\n`,
  large: `#!/bin/sh\nprintf 'Content-Type: a/b\\n\\n'\nexec head -c ${largeMiB * 2 ** 20} /dev/zero\n`,
};

export default {
  figures: {
    perSecond: perSecond('requests'),
    reads: counted('read() per MiB', 'calls'),
  },
  settings: {
    small: { says: `a program that says hello, ${clients} clients` },
    large: { says: `a program that writes ${largeMiB} MiB` },
  },
  rounds: 5,
  deadlineMs: 60_000,
  runs: Object.keys(programs).flatMap((setting) => runsOf(setting, contenders)),
  bars: [
    {
      says: 'CGI from a server with 500 MiB, requests per second against spawn',
      figure: 'perSecond',
      of: { setting: 'small', contender: 'manycore' },
      against: runsOf('small', ['spawn']),
      atLeast: 2,
    },
    {
      says: 'CGI output, read() calls per MiB against spawn',
      figure: 'reads',
      of: { setting: 'large', contender: 'manycore' },
      against: runsOf('large', ['spawn']),
      atMost: 0.125,
    },
  ],
  async measure({ contender, setting, scale }) {
    const root = mkdtempSync(join(tmpdir(), 'manycore-bench-'));
    try {
      const file = join(root, 'program');
      writeFileSync(file, programs[setting]);
      chmodSync(file, 0o755);
      const { port, pid } = await startServer('plain', 'programs.js', {
        ROOT: root,
        BY: contender,
      });
      const bytes = await ask(port);
      const before = readCalls(pid);
      const windowMs = 1000 * seconds * scale;
      const began = performance.now();
      let requests = 0;
      const client = async () => {
        do {
          await ask(port);
          requests += 1;
        } while (performance.now() - began < windowMs);
      };
      await Promise.all(Array.from({ length: setting === 'small' ? clients : 1 }, client));
      const passedMs = performance.now() - began;
      const mib = (requests * bytes) / 2 ** 20;
      return {
        perSecond: (1000 * requests) / passedMs,
        reads: (readCalls(pid) - before) / mib,
      };
    } finally {
      rmSync(root, { recursive: true });
    }
  },
};

/**
 * System calls that read, by all threads of a process so far: proc_pid_io(5). Thread by thread, because
 * the file of the process counts those of children that have ended, too.
 */
function readCalls(pid) {
  const readsOf = (thread) => readFileSync(`/proc/${pid}/task/${thread}/io`, 'utf8');
  return readdirSync(`/proc/${pid}/task`)
    .map((thread) => Number(/^syscr: (\d+)/m.exec(readsOf(thread))[1]))
    .reduce((sum, count) => sum + count, 0);
}

/** Resolves to the number of bytes received. */
function ask(port) {
  return new Promise((resolve, reject) => {
    get({ port, host: '127.0.0.1', path: '/program', agent: false }, (response) => {
      let bytes = 0;
      response.on('data', (chunk) => {
        bytes += chunk.length;
      });
      response.on('end', () => resolve(bytes));
      response.on('error', reject);
    }).on('error', reject);
  });
}
