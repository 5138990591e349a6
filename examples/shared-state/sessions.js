// Sessions for all loops of a server: a login at one of them counts at each, and outlives a reload of the
// server. A session that is not used for an hour ends.
//   manycore serve examples/shared-state/sessions.js
//   curl -c jar 'localhost:8080/login?name=ada' && curl -b jar localhost:8080 && curl -b jar localhost:8080/logout

import { randomUUID } from 'node:crypto';
import { atomically, named, tmap } from 'manycore/stm';

const lifeMs = 3_600_000;

/** By the id in the cookie: who has logged in, the pages seen, and the time of the last one. */
const sessions = named('sessions', () => tmap());

function logIn(name) {
  const id = randomUUID();
  sessions.set(id, { name, pages: 0, usedMs: Date.now() });
  return id;
}

/** Returns the session with one page more; `undefined`: there is none, or it has ended. */
function visit(id) {
  return atomically(() => {
    const session = sessions.get(id);
    if (session === undefined || Date.now() - session.usedMs > lifeMs) return undefined;
    const next = { ...session, pages: session.pages + 1, usedMs: Date.now() };
    sessions.set(id, next);
    return next;
  });
}

function forget() {
  for (const [id, { usedMs }] of sessions.entries()) {
    if (Date.now() - usedMs > lifeMs) sessions.delete(id);
  }
}

setInterval(forget, lifeMs / 60).unref();

export default (request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  const [, id = ''] = /\bsession=([\w-]+)/.exec(request.headers.cookie ?? '') ?? [];
  if (pathname === '/login') {
    const made = logIn(searchParams.get('name') ?? 'somebody');
    response.setHeader('set-cookie', `session=${made}; HttpOnly; SameSite=Lax; Path=/`);
    response.end('logged in\n');
  } else if (pathname === '/logout') {
    sessions.delete(id);
    response.end('logged out\n');
  } else {
    const session = visit(id);
    response.statusCode = session === undefined ? 401 : 200;
    response.end(session ? `${session.name}: page ${session.pages}\n` : 'log in first\n');
  }
};
