// Uploads useful and hostile code to the server of app.js, and prints what becomes of it, and how often the server
// answered other clients meanwhile.
//   npm run example plugins

import { once } from 'node:events';
import { createServer } from 'node:http';
import { partitionProblem } from 'manycore';
import app from './app.js';
import { uploads, values } from './uploads.js';

const problem = partitionProblem();
if (problem !== undefined) throw problem;

const server = createServer(app).listen(0, '127.0.0.1');
await once(server, 'listening');
const origin = `http://127.0.0.1:${server.address().port}`;

async function post(path, body) {
  const response = await fetch(origin + path, { method: 'POST', body });
  return await response.json();
}

/** Asks for the server's health until `work` is done; returns the number of answers, too. */
async function beside(work) {
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
  let answers = 0;
  while (!isDone) {
    const { isWell } = await (await fetch(`${origin}/health`)).json();
    if (isWell) answers += 1;
  }
  return { result: await done, answers };
}

for (const [name, source] of Object.entries(uploads)) {
  const path = encodeURIComponent(name);
  await post(`/plugins/${path}`, source);
  const { result, answers } = await beside(post(`/run/${path}`, JSON.stringify(values)));
  const { value, error, code } = result;
  const failure = error?.startsWith(code ?? '') ? error : `${code}: ${error}`;
  const outcome = error === undefined ? JSON.stringify(value) : failure;
  const line = outcome.split('\n')[0].slice(0, 110);
  console.log(`${name.padEnd(28)} ${line}   (${answers} other answers)`);
}
server.close();
