// A service: an object whose methods are called by requests to one address. Not here: the calling side
// (proxy.ts).

import { CodedError } from '../../errors.js';
import type { BusMessage } from '../delivery/message.js';
import { parseServiceCall, type ServiceCall } from '../protocol.js';
import type { ConsumerOptions } from '../types.js';
import { methodsOf } from './methods.js';

export interface ServiceOptions extends ConsumerOptions {}

/** Returns the handler of the service's consumer. Throws `OPTION_INVALID`. */
export function serviceHandler(
  address: string,
  service: object,
): (message: BusMessage) => Promise<void> {
  const methods = methodsOf(service);
  return async (message) => {
    const { method, args } = callOf(message);
    const fn = methods.get(method);
    if (fn === undefined) {
      const error = noMethod(address, method);
      if (!message.isAwaited) throw error;
      message.failWith(error);
      return;
    }
    message.reply(await Reflect.apply(fn, service, args));
  };
}

/** Throws `OPTION_INVALID` for a message that no proxy has sent. */
function callOf({ address, body }: BusMessage): ServiceCall {
  const call = parseServiceCall(body);
  if (call !== undefined) return call;
  const text = `"${address}" is a service, and takes no other messages`;
  throw new CodedError('OPTION_INVALID', `${text}: call its methods by bus.proxy("${address}")`);
}

function noMethod(address: string, method: string): CodedError {
  const text = `the service at ${address} has no method ${method}`;
  return new CodedError('BUS_NO_METHOD', `${text}: check its name, and the version of the service`);
}
