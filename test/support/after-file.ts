// Loaded before every test file (scripts/test.mjs passes it as --import). When the file's tests are over, it
// checks for leaks: no child process of the file runs, no new descriptor is open, and no named shared memory
// of ours is left. It waits for that with a deadline, then fails the file. Hooks of node:test would run
// before the file's own `after` hooks; `beforeExit` comes after them all.
// Not here: orphans that outlive the file's process (scripts/test.mjs checks for those at the end).

import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';
import { childrenOf, openDescriptors, sharedMemoryObjects } from './processes.js';

const deadlineMs = Number(process.env['MANYCORE_LEAK_DEADLINE_MS'] ?? 20_000);
const pauseMs = 20;

/** Rounds of the event loop after the first `beforeExit`, for hooks of the tests that are still due. */
const settleRounds = 3;

/** libuv opens these at its own time and keeps them: for its loop, and as a reserve of servers. */
const ownedByNode = new Set(['anon_inode:[eventpoll]', 'anon_inode:[io_uring]', '/dev/null']);

/** A process keeps its one file of transactional memory (crates/node/src/space_file.rs), from its first worker on. */
const spaceFile = '/memfd:manycore-stm (deleted)';

// Threads and child processes inherit --import; only a test file's own main thread is checked.
if (isMainThread && process.argv[1]?.endsWith('.test.js')) watchThisFile();

function watchThisFile(): void {
  openSignalPipe();
  const before = { descriptors: openDescriptors(), shared: sharedMemoryObjects() };
  let rounds = 0;
  const onBeforeExit = () => {
    rounds += 1;
    if (rounds <= settleRounds) {
      setImmediate(() => {});
      return;
    }
    process.off('beforeExit', onBeforeExit);
    void failIfLeaking(() => [
      ...childrenOf(process.pid).map(({ pid, commandLine }) => `child ${pid}: ${commandLine}`),
      ...added([...before.descriptors, spaceFile], openDescriptors())
        .filter((target) => !ownedByNode.has(target))
        .map((target) => `descriptor: ${target}`),
      ...added(before.shared, sharedMemoryObjects()).map((name) => `/dev/shm/${name}`),
    ]);
  };
  process.on('beforeExit', onBeforeExit);
}

async function failIfLeaking(findLeaks: () => string[]): Promise<void> {
  const end = performance.now() + deadlineMs;
  let leaks = findLeaks();
  if (leaks.length > 0) setFlagsFromString('--expose-gc');
  while (leaks.length > 0 && performance.now() < end) {
    // Memory that is freed with its last view is no leak: collect, then check again.
    runInNewContext('gc()');
    await sleep(pauseMs);
    leaks = findLeaks();
  }
  if (leaks.length === 0) return;
  process.exitCode = 1;
  console.error(`left behind by ${process.argv[1]}:\n  ${leaks.join('\n  ')}`);
}

/** Entries that `now` has more often than `before`. */
function added(before: readonly string[], now: readonly string[]): string[] {
  const rest = [...before];
  return now.filter((each) => {
    const at = rest.indexOf(each);
    if (at < 0) return true;
    rest.splice(at, 1);
    return false;
  });
}

/** libuv makes the pipe at the first signal handler or child, and keeps it: so make it first. */
function openSignalPipe(): void {
  const ignore = () => {};
  process.on('SIGWINCH', ignore);
  process.off('SIGWINCH', ignore);
}
