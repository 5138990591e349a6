// The HTTP server: two pages, the buttons, live events. It is independent of how pictures are decoded; only
// its response times show that they are, in this process or elsewhere.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UsageError } from './options.js';

const pages = fileURLToPath(new URL('./pages/', import.meta.url));
const uplot = dirname(createRequire(import.meta.url).resolve('uplot/package.json'));

/** Readable files by path; nothing else of the disk can be read. */
const files = {
  '/': [join(pages, 'remote.html'), 'text/html; charset=utf-8'],
  '/tv': [join(pages, 'tv.html'), 'text/html; charset=utf-8'],
  '/style.css': [join(pages, 'style.css'), 'text/css'],
  '/remote.js': [join(pages, 'remote.js'), 'text/javascript'],
  '/tv.js': [join(pages, 'tv.js'), 'text/javascript'],
  '/chart.js': [join(pages, 'chart.js'), 'text/javascript'],
  '/uplot.js': [join(uplot, 'dist/uPlot.esm.js'), 'text/javascript'],
  '/uplot.css': [join(uplot, 'dist/uPlot.min.css'), 'text/css'],
};

/**
 * A server that listens. `control` is what it can do: `press(button)`, `setMode(name)`,
 * `feel(ms)`, `watch(answer)`; each throws an error with `status` when the request is wrong.
 * Without `port` it takes 8080, or any free port when 8080 is taken.
 */
export async function startServer({ host, port, picturePath, control }) {
  const served = { ...files, '/picture.png': [picturePath, 'image/png'] };
  const server = createServer((request, answer) => {
    handle(request, answer, served, control).catch((error) => {
      if (answer.headersSent) return answer.destroy();
      answerJson(answer, error.status ?? 502, { error: error.message });
    });
  });
  // The thumb's spare connections live from one mode to the next.
  server.keepAliveTimeout = 65_000;
  await listen(server, port ?? 8080, host).catch((error) => {
    if (error.code === 'EADDRINUSE' && port === undefined) return listen(server, 0, host);
    throw new UsageError(explain(error, port ?? 8080, host));
  });
  return server;
}

function listen(server, port, host) {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function explain({ code, message }, port, host) {
  if (code === 'EADDRINUSE')
    return `port ${port} is in use: give another, or --port 0 for any free one`;
  if (code === 'EACCES') return `port ${port} is not allowed for this user: give one above 1023`;
  return `cannot listen on ${host}, port ${port}: ${message}`;
}

async function handle(request, answer, served, control) {
  const { pathname, searchParams } = new URL(request.url, 'http://tv');
  if (request.method === 'GET') {
    if (pathname === '/events') return control.watch(answer);
    if (Object.hasOwn(served, pathname)) return sendFile(answer, ...served[pathname]);
  }
  if (request.method === 'POST') {
    request.resume(); // bodies are of no interest
    const [, verb, name] = pathname.split('/');
    if (verb === 'press') return answerJson(answer, 200, await control.press(name));
    if (verb === 'mode') return answerJson(answer, 200, await control.setMode(name));
    if (verb === 'felt')
      return answerJson(answer, 200, control.feel(Number(searchParams.get('ms'))));
  }
  answerJson(answer, 404, { error: `there is nothing at ${request.method} ${pathname}` });
}

async function sendFile(answer, path, type) {
  const bytes = await readFile(path);
  answer.writeHead(200, { 'content-type': type, 'cache-control': 'no-cache' });
  answer.end(bytes);
}

function answerJson(answer, status, value) {
  answer.writeHead(status, { 'content-type': 'application/json' });
  answer.end(JSON.stringify(value));
}
