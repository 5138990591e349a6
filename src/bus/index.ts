export { BusAddress } from './address.js';
export { type BusOptions, EventBus } from './bus.js';
export type { BusCodec, Registration } from './codecs.js';
export type { Consumer } from './consumer.js';
export { createCopy } from './copy.js';
export type {
  InterceptedChange,
  InterceptedMessage,
  Interceptor,
  Interceptors,
} from './interceptors.js';
export { BusLink } from './link.js';
export {
  type BusHeaders,
  type BusMessage,
  headersOf,
  type ReplyOptions,
  type ReplyRequestOptions,
} from './message.js';
export type { Locality } from './receivers.js';
export { ScopedBus } from './scoped.js';
export { reservedPrefix, type StreamHandler, type StreamOptions } from './streams.js';
export type { Bus, BusStats, ConsumerOptions, Handler, SendOptions } from './types.js';
