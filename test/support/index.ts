// Helpers for the tests of every part.

export { isFew, someOf } from './few.js';
export { freePort } from './ports.js';
export { childrenOf, isRunning, killOne, limit, noLimits, openDescriptors } from './processes.js';
export { type Random, random, seeded } from './random.js';
export { waitFor, withDeadline } from './wait.js';
export { warningsWith } from './warnings.js';
