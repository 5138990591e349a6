// A service: an object whose methods are called by requests to one address. Not here: the calling side
// (proxy.ts).

import { CodedError } from '../../errors.js';
import { messageOf, nowMs } from '../../lib/index.js';
import type { BusMessage } from '../delivery/message.js';
import { parseServiceCall, type ServiceCall } from '../protocol.js';
import type { ConsumerOptions } from '../types.js';
import { methodsOf } from './methods.js';
import { MethodStats, type MicroOptions } from './micro.js';

export interface ServiceOptions extends ConsumerOptions {
  /** Shows the service to tools of NATS, in a cluster. Default: not shown. */
  readonly micro?: MicroOptions | undefined;
}

/** A service that has no consumer yet. */
export interface PreparedService {
  readonly handler: (message: BusMessage) => Promise<void>;
  readonly methods: ReadonlyMap<string, MethodStats>;
}

/** Throws `OPTION_INVALID`. */
export function prepareService(address: string, service: object): PreparedService {
  const offered = methodsOf(service);
  const methods = new Map([...offered.keys()].map((name) => [name, new MethodStats()]));
  const handler = async (message: BusMessage): Promise<void> => {
    const { method, args } = callOf(message);
    const [fn, stats] = [offered.get(method), methods.get(method)];
    if (fn !== undefined && stats !== undefined) {
      await counted(stats, async () => message.reply(await Reflect.apply(fn, service, args)));
      return;
    }
    const error = noMethod(address, method);
    if (!message.isAwaited) throw error;
    message.failWith(error);
  };
  return { handler, methods };
}

async function counted(stats: MethodStats, call: () => Promise<void>): Promise<void> {
  const startedMs = nowMs();
  stats.requests += 1;
  try {
    await call();
  } catch (error) {
    stats.errors += 1;
    stats.lastError = messageOf(error);
    throw error;
  } finally {
    stats.runMs += nowMs() - startedMs;
  }
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
