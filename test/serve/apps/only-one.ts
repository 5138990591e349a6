// Notes in a file when the one function of the server begins and ends, with times of the system's clock since its
// start, which all processes share.

import { once } from 'node:events';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onlyOne, self } from '../../../src/serve/public.js';

const [, , file = '', mode = ''] = process.argv;

function note(what: string): void {
  const at = Number(process.hrtime.bigint());
  const { instance } = self;
  const line = `${JSON.stringify({ what, pid: process.pid, instance, at })}\n`;
  if (existsSync(dirname(file))) appendFileSync(file, line); // else the test has ended
}

onlyOne(async (signal) => {
  note('begin');
  if (mode === 'block') setTimeout(block, 10);
  await once(signal, 'abort');
  note('abort');
  if (mode === 'stay') await new Promise(() => {});
  if (mode === 'late') await sleep(300);
  note('end');
});

/** Never returns in the loop that runs the function first. */
function block(): void {
  if (readFileSync(file, 'utf8').split('\n').length > 2) return;
  for (;;);
}

createServer(({ url }, response) => {
  if (url === '/exit') process.exit(7); // of the thread, or of the process
  const env = process.env['NODE_APP_INSTANCE'];
  response.end(JSON.stringify({ ...self, pid: process.pid, env }));
}).listen(Number(process.env['PORT'] ?? 0));
