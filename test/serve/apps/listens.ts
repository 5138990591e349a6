// An ordinary program without manycore. `?block=MS` keeps its event loop busy, `?until=FILE` while there is
// no such file, `?wait=MS` answers later; all send a first part at once.
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { threadId } from 'node:worker_threads';

const server = createServer((request, response) => {
  const { searchParams } = new URL(request.url ?? '/', 'http://localhost');
  const blockMs = Number(searchParams.get('block') ?? 0);
  const waitMs = Number(searchParams.get('wait') ?? 0);
  const until = searchParams.get('until');
  const answer = (): void => {
    const endMs = performance.now() + blockMs;
    while (performance.now() < endMs || (until !== null && !existsSync(until)));
    response.end(`${process.pid}:${threadId}`);
  };
  if (blockMs + waitMs === 0 && until === null) {
    answer();
    return;
  }
  response.write('began ');
  if (waitMs > 0) setTimeout(answer, waitMs);
  else setImmediate(answer);
});
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1');
