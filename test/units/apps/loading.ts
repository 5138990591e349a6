// A unit whose module asks the program before it is loaded, and then never is.
import { bus } from '../../../src/public.js';

await bus.request('begin', 0);
await new Promise(() => {});

export function start(): void {}
