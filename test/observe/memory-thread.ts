import type { ThreadStats } from '../../src/agent/index.js';

const noGc = { count: 0, totalMs: 0, maxMs: 0 };

/** A thread that reports this transactional memory. */
export function threadWithMemory(uptimeMs: number, number: number, stats: object): ThreadStats {
  return {
    pid: 10,
    thread: number,
    title: '/app/main.js',
    node: '24.0.0',
    version: '0.1.0',
    uptimeMs,
    loop: { idleMs: 0, activeMs: 0, lag: undefined },
    heap: { usedBytes: 0, totalBytes: 0, limitBytes: 0, externalBytes: 0 },
    gc: { minor: noGc, major: noGc, incremental: noGc, weakCallbacks: noGc },
    process: undefined,
    captures: { count: 0, totalMs: 0 },
    sources: [{ kind: 'stm', id: 1, stats }],
  };
}
