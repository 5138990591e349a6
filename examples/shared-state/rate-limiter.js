// One limit for all loops of a server: a client may make 5 requests in 10 seconds, whichever loops answer.
//   manycore serve examples/shared-state/rate-limiter.js

import { atomically, named, tmap } from 'manycore/stm';

const limit = 5;
const windowMs = 10_000;

/** By address: when the client's window began, and its requests since. */
const clients = named('rate limiter', () => tmap());

/** True: the client has requests left. Its window begins with its first request. */
export function mayEnter(client, nowMs) {
  return atomically(() => {
    const known = clients.get(client);
    const isOver = known === undefined || nowMs - known.sinceMs >= windowMs;
    const { sinceMs, count } = isOver ? { sinceMs: nowMs, count: 0 } : known;
    if (count >= limit) return false;
    clients.set(client, { sinceMs, count: count + 1 });
    return true;
  });
}

/** Deletes windows that are over: the map would grow with each client that ever came. */
function forget(nowMs) {
  for (const [client] of clients.entries()) {
    atomically(() => {
      const known = clients.get(client);
      if (known !== undefined && nowMs - known.sinceMs >= windowMs) clients.delete(client);
    });
  }
}

setInterval(() => forget(Date.now()), windowMs).unref();

export default (request, response) => {
  if (mayEnter(request.socket.remoteAddress ?? '', Date.now())) {
    response.end('welcome\n');
  } else {
    response.statusCode = 429;
    response.end('too many requests\n');
  }
};
