// Entry of the process that runs a load script, or a task repeatedly: `tune-entry.js load FILE` or
// `tune-entry.js task FILE CONCURRENCY`. A separate process keeps its CPU time and crashes apart from ours,
// and starts a task with the flags and the environment of the configuration.

import { createHistogram } from 'node:perf_hooks';
import { pathToFileURL } from 'node:url';
import { messageOf } from '../../lib/index.js';
import { type FromRunner, parseRunMessage, type RunMessage } from '../protocol.js';
import type { LoadResult } from './load-output.js';

type Exported = (context: object) => unknown;

const nsPerMs = 1e6;

const [, , mode, file = '', concurrency = '1'] = process.argv;
process.on('disconnect', () => process.exit(1)); // the parent has ended

try {
  const exported = await exportOf(file);
  process.on('message', (message) => {
    void answer(exported, parseRunMessage(message));
  });
  send({ type: 'ready' });
} catch (error) {
  send({ type: 'failed', message: messageOf(error) });
}

function send(message: FromRunner): void {
  process.send?.(message);
}

async function exportOf(path: string): Promise<Exported> {
  const module: { readonly default?: unknown } = await import(pathToFileURL(path).href);
  const exported = module.default;
  if (!isExported(exported)) throw new TypeError(`${path} has no function as its default export`);
  return exported;
}

function isExported(value: unknown): value is Exported {
  return typeof value === 'function';
}

async function answer(exported: Exported, message: RunMessage): Promise<void> {
  try {
    const begin = performance.now();
    const result =
      mode === 'task' ? await repeat(exported, message.seconds) : await load(exported, message);
    process.send?.({ type: 'done', result, tookMs: performance.now() - begin });
  } catch (error) {
    send({ type: 'failed', message: messageOf(error) });
  }
}

function load(exported: Exported, { url, port, seconds }: RunMessage): unknown {
  return exported({ url, port, seconds, signal: AbortSignal.timeout(Math.ceil(seconds * 1000)) });
}

/** Calls the task until the time is over, with the requested concurrency. */
async function repeat(task: Exported, seconds: number): Promise<LoadResult> {
  const times = createHistogram();
  const signal = AbortSignal.timeout(Math.ceil(seconds * 1000));
  const begin = performance.now();
  const end = begin + seconds * 1000;
  const lane = async (): Promise<void> => {
    for (let from = performance.now(); from < end; ) {
      await task({ signal });
      const to = performance.now();
      times.record(Math.max(1, Math.round((to - from) * nsPerMs)));
      from = to;
    }
  };
  await Promise.all(Array.from({ length: Number(concurrency) }, lane));
  return {
    requests: times.count,
    errors: 0,
    seconds: (performance.now() - begin) / 1000,
    p50Ms: times.percentile(50) / nsPerMs,
    p99Ms: times.percentile(99) / nsPerMs,
  };
}
