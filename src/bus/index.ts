export { BusAddress } from './address.js';
export { forwardingBus, type ScopedBus } from './bus.js';
export type { Consumer } from './delivery/consumer.js';
export { createCopy } from './delivery/copy.js';
export {
  type BusHeaders,
  type DistinctBusHeaders,
  headersOf,
  noHeaders,
  type OutgoingBusHeaders,
} from './delivery/headers.js';
export type {
  BusMessage,
  Delivery,
  Outcome,
  ReplyOptions,
  ReplyRequestOptions,
  Waiter,
} from './delivery/message.js';
export type { Locality } from './delivery/receivers.js';
export { noHandlers, noRequester } from './errors.js';
export { type BusOptions, EventBus } from './event-bus.js';
export type { BusCodec, Registration } from './filters/codecs.js';
export type {
  InterceptedChange,
  InterceptedMessage,
  Interceptor,
  Interceptors,
} from './filters/interceptors.js';
export { type HandledMessage, type MessageTrace, traceMessages } from './filters/trace.js';
export type { Successor } from './hand-over/incoming-hand-off.js';
export { type FollowEnds, setFollower } from './monitors/targets.js';
export type { ConsumerEnd, InstanceEnd, MonitoredDeployment } from './monitors/types.js';
export { parseFailure, parseMessage, postFailure } from './protocol.js';
export { reservedPrefix, streamPrefix } from './reserved.js';
export { type HandOffTarget, Scope } from './scope.js';
export type { ServiceProxy } from './services/methods.js';
export type { AdvertisedService, MicroOptions } from './services/micro.js';
export type { ProxyOptions } from './services/proxy.js';
export type { ServiceOptions } from './services/service.js';
export type { StreamHandler, StreamOptions } from './streams/streams.js';
export { BusLink } from './transports/link.js';
export type { AttachedUplink, Found, Uplink } from './transports/transport.js';
export type { Bus, BusStats, ConsumerOptions, Handler, SendOptions } from './types.js';
