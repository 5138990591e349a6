// The channel between threads that works everywhere.

export { acceptMemory, offerMemory } from './memory.js';
