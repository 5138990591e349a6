// `manycore serve examples/frameworks/hono.js`: an app of Hono, which has a `fetch` and needs no server.
import { Hono } from 'hono';

const app = new Hono();
app.get('/', (context) => context.text(`hello from Hono, process ${process.pid}`));
app.post('/echo', async (context) => context.json(await context.req.json()));

export default app;
