// Load at a fixed rate: each request has a time at which it is due, and its latency counts from there. A
// server that stops for a while so pays for all requests of that time (coordinated omission, Gil Tene).
import { Agent, get } from 'node:http';

/**
 * Runs the load. `pathOf(index)` returns the path of each request, `agentOf` its connection; without one each
 * has a new one. Resolves to `{ answers: [{ path, ms }], failed }`.
 */
export async function openLoop({
  port,
  perSecond,
  seconds,
  pathOf = () => '/',
  agentOf = () => false,
}) {
  const count = Math.round(perSecond * seconds);
  const answers = [];
  let failed = 0;
  const began = performance.now();
  const dueMs = (index) => began + (index * 1000) / perSecond;
  const ask = (index) =>
    new Promise((resolve) => {
      const path = pathOf(index);
      const fail = () => {
        failed += 1;
        resolve();
      };
      const request = get({ port, host: '127.0.0.1', path, agent: agentOf(index) }, (response) => {
        response.resume();
        response.on('error', fail);
        response.on('end', () => {
          if (response.statusCode !== 200) return fail();
          answers.push({ path, ms: performance.now() - dueMs(index) });
          resolve();
        });
      });
      request.on('error', fail);
    });
  const asked = [];
  while (asked.length < count) {
    while (asked.length < count && dueMs(asked.length) <= performance.now()) {
      asked.push(ask(asked.length));
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(asked);
  return { answers, failed };
}

/** Returns this many connections, kept and used in turn, like those of many clients. */
export function keptConnections(count) {
  const agents = Array.from({ length: count }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  return {
    agentOf: (index) => agents[index % count],
    close: () => {
      for (const agent of agents) agent.destroy();
    },
  };
}

/** Returns the value at `share`, from 0 to 1, of numbers. */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}
