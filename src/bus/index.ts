export { BusAddress } from './address.js';
export type { Heir } from './arrival.js';
export { type BusOptions, EventBus } from './bus.js';
export type { Consumer } from './consumer.js';
export { createCopy } from './copy.js';
export { BusLink } from './link.js';
export {
  type BusHeaders,
  type BusMessage,
  headersOf,
  type ReplyOptions,
  type ReplyRequestOptions,
} from './message.js';
export type { Locality } from './receivers.js';
export { ScopedBus, type Welcome } from './scoped.js';
export { reservedPrefix, type StreamHandler, type StreamOptions } from './streams.js';
export type { Bus, BusStats, ConsumerOptions, Handler, SendOptions } from './types.js';
