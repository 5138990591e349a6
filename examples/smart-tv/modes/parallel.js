// The manycore way: the plain way in `parallel(…)`. The callback runs in an idle worker process; PNG,
// which it captured, goes along; the pixels come back through shared memory.
import { parallel } from 'manycore';
import { PNG } from 'pngjs';

export const decode = parallel((bytes) => PNG.sync.read(bytes));
