// A web server whose users upload code: formulas, and filters for pictures. Each run has a sandbox of its own.
//   POST /plugins/NAME   with the source as body
//   POST /run/NAME       with JSON as body: the values by the names that the source has for them
//   GET  /health

import { text } from 'node:stream/consumers';
import { runSource } from 'manycore';

const plugins = new Map();
const limits = { timeoutMs: 1000, memoryMb: 128, outputMb: 1, resultMb: 4 };

/** Functions of the program that plug-ins may call. A stranger chooses their arguments. */
const functions = {
  rate: (currency) =>
    new Map([
      ['EUR', 1],
      ['USD', 1.08],
      ['JPY', 170],
    ]).get(String(currency)),
};

async function run(name, body) {
  const source = plugins.get(name);
  if (source === undefined)
    return { status: 404, answer: { error: `there is no plug-in ${name}` } };
  try {
    const value = await runSource(source, { ...limits, functions, args: JSON.parse(body) });
    return { status: 200, answer: { value } };
  } catch (error) {
    return { status: 422, answer: { error: error.message, code: error.code } };
  }
}

async function answer({ method, url }, body) {
  const [, what, name = ''] = new URL(url, 'http://localhost').pathname.split('/');
  if (what === 'health') return { status: 200, answer: { isWell: true } };
  if (method === 'POST' && what === 'plugins' && name !== '') {
    plugins.set(name, body);
    return { status: 201, answer: { name } };
  }
  if (method === 'POST' && what === 'run') return await run(name, body);
  return { status: 404, answer: { error: 'POST /plugins/NAME or /run/NAME' } };
}

export default async (request, response) => {
  const { status, answer: given } = await answer(request, await text(request));
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(given));
};
