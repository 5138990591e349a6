// Answers with what a task says that runs in a worker: `?ms=` of work, `?timeoutMs=`, `?task=`; with
// `?times=` one after the other; after `?wait=` ms. White space comes at once. `?file=`: a task at rest notes there
// that it has begun, and one `until` spins until it exists.
import { createServer } from 'node:http';
import { threadId } from 'node:worker_threads';
import { pmap, run, shared } from '../../../src/public.js';

const loop = `${process.pid}:${threadId}`;

function spin(ms: number): number {
  const end = performance.now() + ms;
  while (performance.now() < end);
  return process.pid;
}

const tasks: Record<string, (ms: number, file: string) => unknown> = {
  spin,
  forever: () => spin(Infinity),
  until: async (_, file) => {
    const { existsSync } = await import('node:fs');
    while (!existsSync(file));
  },
  never: async () => {
    await new Promise((resolve) => setTimeout(resolve, 2 ** 30));
  },
  rest: async (ms, file) => {
    const { appendFileSync } = await import('node:fs');
    appendFileSync(file, `${process.pid}\n`);
    await new Promise((resolve) => setTimeout(resolve, ms));
    return process.pid;
  },
  // To every socket of the worker: one of them is its wire.
  nonsense: async () => {
    const { readdirSync, readlinkSync, writeSync } = await import('node:fs');
    for (const fd of readdirSync('/proc/self/fd').map(Number)) {
      try {
        if (readlinkSync(`/proc/self/fd/${fd}`).startsWith('socket:'))
          writeSync(fd, 'nonsense'.repeat(8));
      } catch {} // the folder itself
    }
    await new Promise((resolve) => setTimeout(resolve, 2 ** 30));
  },
  nested: async () => {
    const sums = await pmap([1, 2, 3, 4], (each) => each + 1);
    return sums.reduce((sum, each) => sum + each);
  },
  leak: (mib) => {
    Reflect.set(globalThis, 'kept', Buffer.alloc(mib * 2 ** 20, 1));
    return process.pid;
  },
  memory: () => shared(Buffer.alloc(100_000, 7)).reduce((sum, byte) => sum + byte),
};

createServer(async (request, response) => {
  const query = new URL(request.url ?? '/', 'http://localhost').searchParams;
  const task = tasks[query.get('task') ?? 'spin'] ?? spin;
  const timeoutMs = Number(query.get('timeoutMs') ?? Infinity);
  const waitMs = Number(query.get('wait') ?? 0);
  const file = query.get('file') ?? '';
  response.write(' ');
  if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
  try {
    let said: unknown;
    for (let time = 0; time < Number(query.get('times') ?? 1); time += 1) {
      said = await run.with({ timeoutMs })(task, Number(query.get('ms') ?? 0), file);
    }
    response.end(JSON.stringify({ loop, said }));
  } catch (error) {
    const { code = String(error) }: { code?: string } = Object(error);
    response.end(JSON.stringify({ loop, code }));
  }
}).listen(0, '127.0.0.1');
