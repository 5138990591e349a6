// The six jobs in libuv's thread pool, whose size the environment sets. Prints when each was done.
import { pbkdf2 } from 'node:crypto';
import { promisify } from 'node:util';
import { timesOf, turns } from './derive.js';

const derive = promisify(pbkdf2);
const doneMs = await timesOf(() => derive('secret', 'salt', turns, 64, 'sha512'));
process.stdout.write(JSON.stringify(doneMs));
