// A live leaderboard: points may come to any loop of a server, and each loop shows the same ten names at once.
//   manycore serve examples/shared-state/leaderboard.js
//   curl -N localhost:8080/live &  curl -X POST 'localhost:8080/points?name=ada&add=5'

import { atomically, atomicallyWhen, check, named, tmap, tsortedMap, tvar } from 'manycore/stm';

const maxPoints = 1e9;
const places = 10;

const pointsOf = named('leaderboard: points', () => tmap());
/** Names by a key that sorts the most points first. */
const board = named('leaderboard: board', () => tsortedMap());
/** Counts changes: a reader that has shown one waits for the next. */
const changes = named('leaderboard: changes', () => tvar(0));

const keyOf = (points, name) => `${String(maxPoints - points).padStart(10, '0')} ${name}`;

function add(name, more) {
  atomically(() => {
    const before = pointsOf.get(name);
    const points = Math.min(maxPoints, (before ?? 0) + more);
    if (before !== undefined) board.delete(keyOf(before, name));
    pointsOf.set(name, points);
    board.set(keyOf(points, name), { name, points });
    changes.update((count) => count + 1);
  });
}

/** The first names, and the number of the change that they are of: of one moment. */
function first() {
  return atomically(() => ({ change: changes.get(), names: board.values({ limit: places }) }));
}

/** Sends the board now and after each change, until the client leaves. */
async function showLive(response) {
  const left = new AbortController();
  const { signal } = left;
  response.on('close', () => left.abort());
  response.setHeader('content-type', 'text/event-stream');
  for (let shown = first(); !signal.aborted; shown = first()) {
    response.write(`data: ${JSON.stringify([...shown.names])}\n\n`);
    const hasChanged = atomicallyWhen(() => check(changes.get() !== shown.change), { signal });
    await hasChanged.catch((error) => {
      if (!signal.aborted) throw error;
    });
  }
}

export default async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  if (pathname === '/live') return await showLive(response);
  if (pathname === '/points' && request.method === 'POST') {
    const [name, more] = [searchParams.get('name'), Number(searchParams.get('add'))];
    if (name && Number.isInteger(more) && more > 0) add(name, more);
  }
  response.setHeader('content-type', 'application/json');
  response.end(`${JSON.stringify([...first().names])}\n`);
};
