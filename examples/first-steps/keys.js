// The same function in an idle process, and mapped over a list on every core.
import { scryptSync } from 'node:crypto';
import { parallel, pmap } from 'manycore';

const salt = 'pepper';
const key = (password) => scryptSync(password, salt, 16).toString('hex');

const derive = parallel(key); // runs in an idle process; `salt` and scryptSync go along
console.log(await derive('secret'));
console.log(await pmap(['anna', 'ben', 'carla', 'dora'], key)); // `map` on every core
