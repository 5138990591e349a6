// `manycore serve examples/frameworks/hono-node.js`: the same on Hono's own server for Node.
import { serve } from '@hono/node-server';
import app from './hono.js';

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) });
