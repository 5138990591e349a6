// The same units in three programs, as if on three machines. Each is `manycore run` with the unit's file, and
// they communicate over a NATS server, or without one. This program only requests the rate.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const command = fileURLToPath(new URL('main.js', import.meta.resolve('manycore')));

/**
 * Requests per second of so many instances, on loops in so many processes. `bus` is in the cluster, in which
 * `flags` put a program.
 */
export async function measureClustered(
  { bus, flags },
  { instances, processes, connections, seconds },
) {
  const programs = [];
  const run = async (
    unit,
    config,
    more = ['--instances', '1', '--processes', '1', '--loops', '1'],
  ) => {
    const program = await start(unit, ['--config', JSON.stringify(config), ...flags, ...more]);
    programs.push(program);
    return program;
  };
  try {
    const { port } = await run('server', { port: 0 }, [
      ...['--instances', String(instances), '--processes', String(processes)],
      ...['--loops', String(Math.ceil(instances / processes))],
    ]);
    await run('rate', {});
    await run('client', { port, connections });
    await wait(1000); // until the code is compiled
    await bus.request('rate');
    await wait(seconds * 1000);
    return Math.round((await bus.request('rate')).body);
  } finally {
    await Promise.all(programs.reverse().map(end));
  }
}

/** `{ child, port }`, once it is in the cluster; it may listen nowhere. */
async function start(unit, flags) {
  const file = fileURLToPath(new URL(`./${unit}.js`, import.meta.url));
  const child = spawn(process.execPath, [command, 'run', file, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let port;
  for await (const line of createInterface({ input: child.stdout })) {
    const [, listening] = /^listening on .*:(\d+)$/.exec(line) ?? [];
    port ??= listening && Number(listening);
    if (line.startsWith('in the cluster')) return { child, port };
  }
  throw new Error(`the program of ${unit}.js has ended before it was in the cluster`);
}

async function end({ child }) {
  if (child.exitCode !== null) return;
  child.stdout.resume(); // a full pipe would block its last messages
  child.kill();
  await once(child, 'exit');
}
