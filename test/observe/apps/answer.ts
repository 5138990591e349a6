// A server that answers.

import { createServer } from 'node:http';

createServer((_, response) => response.end('here')).listen(0);
