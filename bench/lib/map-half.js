// A process that maps what it gets, without a pool: the rival of bench/cases/map-second.js.
import { fib } from './tasks.js';

process.on('message', (items) => process.send(items.map(fib)));
