// Programs and loads for tests of real runs, as short as possible.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** A folder with these files, gone after the test. */
export function folderWith(t: TestContext, files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-tune-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

/** Answers after `delayMs`, an expression; `first` runs before it listens. */
export function server(delayMs: string, first = ''): string {
  return `
    import { createServer } from 'node:http';
    ${first}
    createServer((request, response) => setTimeout(() => response.end('ok'), ${delayMs}))
      .listen(Number(process.env.PORT), '127.0.0.1');`;
}

/** Four clients, one request after the other. */
export const script = `
  import { Agent, get } from 'node:http';
  export default async function ({ url, seconds, signal }) {
    const agent = new Agent({ keepAlive: true });
    const end = performance.now() + seconds * 1000;
    const times = [];
    const client = async () => {
      while (performance.now() < end && !signal.aborted) {
        const from = performance.now();
        await new Promise((resolve, reject) => {
          get(url, { agent }, (response) => response.resume().on('end', resolve)).on('error', reject);
        });
        times.push(performance.now() - from);
      }
    };
    await Promise.all([client(), client(), client(), client()]);
    agent.destroy();
    times.sort((a, b) => a - b);
    return { requests: times.length, p50Ms: times[times.length >> 1], p99Ms: times.at(-1) };
  }`;
