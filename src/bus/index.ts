export { BusAddress } from './address.js';
export { type BusOptions, EventBus } from './bus.js';
export type { BusCodec, Registration } from './codecs.js';
export type { Consumer } from './consumer.js';
export { createCopy } from './copy.js';
export { noHandlers, noRequester } from './errors.js';
export type { Successor } from './incoming-hand-off.js';
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
  type Delivery,
  headersOf,
  noHeaders,
  type Outcome,
  type ReplyOptions,
  type ReplyRequestOptions,
  type Waiter,
} from './message.js';
export type { AttachedUplink, Uplink } from './peer.js';
export { parseFailure, parseMessage } from './protocol.js';
export type { Locality } from './receivers.js';
export { reservedPrefix, streamPrefix } from './reserved.js';
export { type HandOffTarget, ScopedBus } from './scoped.js';
export type { StreamHandler, StreamOptions } from './streams.js';
export { type HandledMessage, type MessageTrace, traceMessages } from './trace.js';
export type { Bus, BusStats, ConsumerOptions, Handler, SendOptions } from './types.js';
