// A server in which every loop keeps a view of its data fresh: the total cost grows with their number.
import { createServer } from 'node:http';

const refreshMs = 200;
let view = 0;

function refresh() {
  let sum = 0;
  for (let at = 0; at < 1_500_000; at++) sum = (sum + at * 7) % 1_000_003;
  view = sum;
}

refresh();
setInterval(refresh, refreshMs);
createServer((_request, response) => response.end(String(view))).listen(Number(process.env.PORT));
