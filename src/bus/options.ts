// Checks of the options of bus calls, as to their names; values are checked where they are used. A message
// without options costs one comparison.

import { ownOptions } from '../lib/index.js';
import type { ReplyOptions, ReplyRequestOptions } from './delivery/message.js';
import type { ProxyOptions } from './services/proxy.js';
import type { ServiceOptions } from './services/service.js';
import type { StreamOptions } from './streams/streams.js';
import type { ConsumerOptions, SendOptions } from './types.js';

/** All names of a type: an option without its name here does not compile. */
type NamesOf<Options> = Readonly<Record<keyof Options, true>>;

const ofReply: NamesOf<ReplyOptions> = { headers: true, codec: true };
const ofMessage: NamesOf<SendOptions> = { ...ofReply, local: true };
const ofReplyRequest: NamesOf<ReplyRequestOptions> = { ...ofReply, timeoutMs: true, signal: true };
const ofRequest: NamesOf<StreamOptions> = { ...ofMessage, ...ofReplyRequest };
const ofConsumer: NamesOf<ConsumerOptions> = { maxBuffered: true, isLocal: true };

const { codec: _, ...ofProxyCalls } = ofRequest;
const ofProxy: NamesOf<ProxyOptions> = ofProxyCalls;
const ofService: NamesOf<ServiceOptions> = { ...ofConsumer, micro: true };

const setOf = (table: NamesOf<object>): ReadonlySet<string> => new Set(Object.keys(table));

/** Option names, by the call that takes them. */
const names = {
  send: setOf(ofMessage),
  publish: setOf(ofMessage),
  request: setOf(ofRequest),
  reply: setOf(ofReply),
  replyAndRequest: setOf(ofReplyRequest),
  openStream: setOf(ofRequest),
  consumer: setOf(ofConsumer),
  acceptStreams: setOf(ofConsumer),
  service: setOf(ofService),
  proxy: setOf(ofProxy),
} satisfies Record<string, ReadonlySet<string>>;

const none = Object.freeze({});

/** Returns what `options` of a call have themselves. Throws `OPTION_INVALID` for an unknown name. */
export function busOptions<Options extends object>(
  call: keyof typeof names,
  options: Options | undefined,
): Partial<Options>;
export function busOptions(call: keyof typeof names, options: object | undefined): object {
  return options === undefined ? none : ownOptions(`the options of ${call}`, options, names[call]);
}
