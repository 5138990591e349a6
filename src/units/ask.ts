// Requests between loops and their director. The reply is a value, or an error that keeps its class, code and
// cause.

import type { Bus, Consumer } from '../bus/index.js';
import { parseAnswer, type ToDirector, type ToUnits } from './protocol.js';

/** For the way there and back, and for a busy loop; in ms. */
const graceMs = 5000;
const maxTimeoutMs = 2 ** 31 - 1;

/**
 * Sends a request whose handler may take `timeoutMs`. Rejects with the other side's error, or as
 * `Bus.request`.
 */
export async function ask(
  bus: Bus,
  address: string,
  message: ToDirector | ToUnits,
  timeoutMs: number,
): Promise<unknown> {
  const options = { timeoutMs: Math.min(timeoutMs + graceMs, maxTimeoutMs) };
  const answer = parseAnswer((await bus.request(address, message, options)).body);
  if ('error' in answer) throw answer.error;
  return answer.value;
}

/** Answers requests to `address` with what `handle` resolves to. */
export function answer(
  bus: Bus,
  address: string,
  handle: (message: unknown) => Promise<unknown>,
): Consumer {
  return bus.consumer(address, async (message) => {
    const answered = await handle(message.body).then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    message.reply(answered);
  });
}
