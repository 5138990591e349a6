// A program that serves metrics, and has nothing else to do after a message.

import { serveMetrics } from '../../../src/observe/index.js';

const { url } = await serveMetrics({ port: 0 });
process.once('message', () => process.disconnect());
process.send?.(url);
