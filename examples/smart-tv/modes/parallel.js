// The manycore way: the plain way in `parallel(…)`. The callback runs in a worker process; PNG, which it
// captured, goes along; the pixels come back through shared memory. The worker has a higher nice value than
// the server, so that a button comes first where both want a core.
import { Pool, parallel } from 'manycore';
import { PNG } from 'pngjs';

const pool = new Pool({ size: 1, niceIncrement: 10 });

export const decode = parallel((bytes) => PNG.sync.read(bytes), { pool });
