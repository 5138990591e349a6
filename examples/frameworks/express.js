// `manycore serve examples/frameworks/express.js`: an app of Express, as its own guide writes it.
import express from 'express';

const app = express();
app.get('/', (_request, response) => response.send(`hello from Express, process ${process.pid}`));
app.post('/echo', express.json(), (request, response) => response.json(request.body));

app.listen(Number(process.env.PORT ?? 3000));
