export { BusAddress } from './address.js';
export {
  type BusOptions,
  type BusStats,
  type ConsumerOptions,
  EventBus,
  type Handler,
  type SendOptions,
} from './bus.js';
export type { Consumer } from './consumer.js';
export type { BusHeaders, BusMessage, ReplyOptions, ReplyRequestOptions } from './message.js';
