// A server that uses libuv's thread pool: eight hashes for each answer, so that one thread is too few.
import { pbkdf2 } from 'node:crypto';
import { createServer } from 'node:http';
import { promisify } from 'node:util';

const hash = promisify(pbkdf2);

createServer(async (_request, response) => {
  const hashes = Array.from({ length: 8 }, () => hash('secret', 'salt', 1000, 64, 'sha512'));
  response.end((await Promise.all(hashes)).length.toString());
}).listen(Number(process.env.PORT));
