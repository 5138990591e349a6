// `manycore serve examples/frameworks/koa.js`: an app of Koa that is exported, and listens on the port that
// `serve` sets.
import { json } from 'node:stream/consumers';
import Koa from 'koa';

const app = new Koa();
app.use(async (context) => {
  context.body =
    context.path === '/echo' ? await json(context.req) : `hello from Koa, process ${process.pid}`;
});

export default app;
