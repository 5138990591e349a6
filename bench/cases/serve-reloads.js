// Does a reload of 2 processes of 2 loops lose a request of any kind of client, whatever is switched on?
// Sticky clients by cookie and by address, rescue beside requests that compute, and files with their thread.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { serve } from '../../dist/bundle/serve.js';
import { cert, key } from '../../dist/test/serve/apps/certificate.js';
import { counted, runsOf } from '../lib/figures.js';
import { fileKinds, programKinds, startClients } from '../serve/client-kinds.js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const reloads = 50;
const contender = 'manycore';
const largeBytes = 3_000_000;
const settings = {
  cookie: {
    says: `${reloads} reloads, 2 clients of each of ${programKinds.length} kinds, sticky by cookie`,
    options: { sticky: { cookie: 'loop' } },
    kinds: programKinds,
  },
  address: {
    says: 'the same, sticky by address',
    options: { sticky: 'address' },
    kinds: programKinds,
  },
  rescue: {
    says: 'the same without sticky, beside requests that compute for 60 ms: connections leave their loops',
    options: {},
    kinds: [...programKinds, 'blocking'],
  },
  files: {
    says: `a folder with its thread for files, 2 clients of each of ${fileKinds.length} kinds`,
    options: {},
    kinds: fileKinds,
  },
  'files-sticky': {
    says: 'the same, sticky by cookie, where loops answer',
    options: { sticky: { cookie: 'loop' } },
    kinds: fileKinds,
  },
};
const allKinds = [...new Set(Object.values(settings).flatMap(({ kinds }) => kinds))];

export default {
  figures: {
    failed: counted('failed', 'requests'),
    answered: { says: 'answered', unit: 'requests', better: 'higher' },
    repeated: counted('repeated by rule', 'requests'),
    late: counted('sent over a connection that was just closed', 'requests'),
    ...Object.fromEntries(
      allKinds.map((kind) => [
        `answered-${kind}`,
        { says: `of them ${kind}`, unit: 'requests', better: 'higher' },
      ]),
    ),
  },
  settings: Object.fromEntries(
    Object.entries(settings).map(([name, { says }]) => [name, { says }]),
  ),
  rounds: 1,
  deadlineMs: 600_000,
  runs: Object.keys(settings).flatMap((setting) => runsOf(setting, [contender])),
  bars: Object.keys(settings).map((setting) => ({
    says: `${reloads} reloads under all kinds of clients (${setting}), requests that failed`,
    figure: 'failed',
    of: { setting, contender },
    atMost: 0,
  })),
  async measure({ setting, scale }) {
    const { options, kinds } = settings[setting];
    const { server, to } = await (setting.startsWith('files') ? openFiles : openProgram)(options);
    const clients = startClients(kinds, 2, to);
    await sleep(1000);
    for (let reload = 0; reload < Math.round(reloads * scale); reload += 1) {
      await server.reload();
      await sleep(200);
    }
    const counts = await clients.stop();
    await server.close();
    const figures = { failed: 0, answered: 0, repeated: 0, late: 0 };
    for (const [kind, { answered, failed, repeated, late, failures }] of Object.entries(counts)) {
      figures.failed += failed;
      figures.answered += answered;
      figures.repeated += repeated;
      figures.late += late;
      figures[`answered-${kind}`] = answered;
      if (failed > 0) console.error(setting, kind, failed, failures.join('\n'));
    }
    return figures;
  },
};

async function openProgram(options) {
  const path = join(mkdtempSync(join(tmpdir(), 'manycore-kinds-')), 'socket');
  Object.assign(process.env, { CERT: cert, KEY: key, UNIX_PATH: path });
  const server = await serve(here('../serve/kinds.js'), { processes: 2, loops: 2, ...options });
  const ports = server.addresses.flatMap(({ port }) => port ?? []); // the path is among them
  const [port, tlsPort, http2Port] = ports;
  return { server, to: { port, tlsPort, http2Port, path, file: '/' } };
}

async function openFiles(options) {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-kinds-'));
  writeFileSync(join(folder, 'small.txt'), 'hello');
  writeFileSync(join(folder, 'large.txt'), 'x'.repeat(largeBytes));
  const server = await serve(here('../../dist/bundle/folders.js'), {
    args: [JSON.stringify({ static: folder, fileThread: true })],
    processes: 2,
    loops: 2,
    port: 0,
    ...options,
  });
  const [{ port }] = server.addresses;
  return { server, to: { port, file: '/small.txt', large: '/large.txt', largeBytes } };
}
