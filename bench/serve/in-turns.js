// Servers that run beside each other, each under load for a second in its turn; those without one are idle.
import { micros, perSecond } from '../lib/figures.js';
import { turnsOf } from '../lib/turns.js';
import { quantile } from './open-loop.js';
import { startServer } from './servers.js';
import { ensureWrk, runWrk } from './wrk.js';

/** Figures of each server. */
export const figures = {
  perSecond: perSecond('requests'),
  cpuUs: micros('CPU per request'),
  p50Us: micros('p50'),
  p99Us: micros('p99'),
};

export const connections = 64;
/** Long enough for compiled code, which comes late where two loops share the requests. */
const warmSeconds = 3;

/**
 * Resolves to the medians of each contender's windows, by its name. `start` starts one, and `warm(contender,
 * server)` runs beside its first load. `beside(contender, server)` starts the activity beside its windows,
 * and returns the function that ends it. A window takes one second, and in each all contenders have a turn.
 */
export async function measureInTurns(
  contenders,
  { scale, flags = [], windows = 3, start = startServer, warm = () => {}, beside = () => () => {} },
) {
  ensureWrk();
  const servers = await Promise.all(contenders.map((contender) => start(contender)));
  const load = ({ port }, seconds) =>
    runWrk(`http://127.0.0.1:${port}/`, { connections, flags, seconds });
  for (const [at, server] of servers.entries()) {
    await Promise.all([load(server, warmSeconds), warm(contenders[at], server)]);
  }
  const found = servers.map(() => []);
  for (let window = 0; window < Math.max(1, windows * scale); window += 1) {
    for (const [at, server] of turnsOf(servers, window)) {
      const end = beside(contenders[at], server);
      const before = server.cpuUs();
      const { requests, p50Us, p99Us } = await load(server, 1);
      const cpuUs = (server.cpuUs() - before) / requests;
      end();
      found[at].push({ perSecond: requests, cpuUs, p50Us, p99Us });
    }
  }
  return Object.fromEntries(contenders.map((contender, at) => [contender, medians(found[at])]));
}

function medians(samples) {
  const median = (name) =>
    quantile(
      samples.map((sample) => sample[name]),
      0.5,
    );
  return Object.fromEntries(Object.keys(samples[0]).map((name) => [name, median(name)]));
}
