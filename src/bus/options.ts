// Checks of the options of bus calls, as to their names; values are checked where they are used. A message
// without options costs one comparison.

import { ownOptions } from '../lib/index.js';

const ofReply = ['headers', 'codec'] as const;
const ofMessage = [...ofReply, 'local'] as const;
const ofRequest = ['timeoutMs', 'signal'] as const;
const ofConsumer = ['maxBuffered', 'isLocal'] as const;

/** Option names, by the call that takes them. */
const names = {
  send: new Set(ofMessage),
  publish: new Set(ofMessage),
  request: new Set([...ofMessage, ...ofRequest]),
  reply: new Set(ofReply),
  replyAndRequest: new Set([...ofReply, ...ofRequest]),
  openStream: new Set([...ofMessage, ...ofRequest]),
  consumer: new Set(ofConsumer),
  acceptStreams: new Set(ofConsumer),
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
