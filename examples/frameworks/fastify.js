// `manycore serve examples/frameworks/fastify.js`: an app of Fastify, as its own guide writes it.
import Fastify from 'fastify';

const fastify = Fastify();
fastify.get('/', () => `hello from Fastify, process ${process.pid}`);
fastify.post('/echo', (request) => request.body);

await fastify.listen({ port: Number(process.env.PORT ?? 3000) });
