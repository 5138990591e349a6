// A program with a transactional memory of its own: one structure in it, by one process. See cases/stm.js.
// node structure-alone.js NAME NUMBERS WARM_MS WINDOW_MS prints the operations of the window.
import { fill, work } from '../../examples/stm-structures/structures.js';

const [, , name, ...numbers] = process.argv;
const [count, warmMs, windowMs] = numbers.map(Number);
process.stdout.write(String(work(name, fill(name, count), count, { warmMs, windowMs })));
