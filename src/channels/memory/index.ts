// The channel between threads that works everywhere.

export { acceptMemory, memoryChannel, offerMemory } from './memory.js';
