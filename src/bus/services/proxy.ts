// A proxy of a service: an object whose methods are requests to one address (service.ts).

import { setRefusal } from '../../context/index.js';
import { abortSignal } from '../../lib/index.js';
import { headersOf } from '../delivery/headers.js';
import type { ReplyRequestOptions } from '../delivery/message.js';
import { checkTimeout } from '../delivery/requests.js';
import type { ServiceCall } from '../protocol.js';
import type { Bus, SendOptions } from '../types.js';
import { isMethodName, type ServiceProxy } from './methods.js';

/** Options of all requests of a proxy. */
export interface ProxyOptions
  extends Omit<SendOptions, 'codec'>,
    Omit<ReplyRequestOptions, 'codec'> {}

/** Throws `OPTION_INVALID`. */
export function makeProxy<T>(bus: Bus, address: string, options: ProxyOptions): ServiceProxy<T> {
  const headers = headersOf(options.headers);
  if (options.timeoutMs !== undefined) checkTimeout(options.timeoutMs);
  abortSignal(options.signal);
  const kept = { ...options, headers };
  const methods = new Map<string, unknown>();
  const methodOf = (name: string): unknown => {
    const known = methods.get(name);
    if (known !== undefined) return known;
    const method = async (...args: unknown[]): Promise<unknown> => {
      const call: ServiceCall = { method: name, args };
      return (await bus.request(address, call, kept)).body;
    };
    methods.set(name, method);
    return method;
  };
  const proxy = new Proxy(Object.freeze({}), {
    get: (target, name) => (isMethodName(name) ? methodOf(name) : Reflect.get(target, name)),
  });
  const why =
    'its requests go over the bus of this thread, and workers are on none; call it here and pass the result, or in ' +
    'another loop make one by bus.proxy()';
  setRefusal(proxy, { what: `a proxy of the service at ${address}`, why });
  return Object(proxy); // the same object, of the type that the program has declared
}
