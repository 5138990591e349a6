// Instances that may block, on the side of their loop: each is in a thread of its own, which is a member of
// the mesh like a loop. The director's requests are relayed to the thread; messages of the bus never come
// this way. A thread that does not answer is ended at the deadline.
// Not here: the program of the thread (units-thread.ts), restarts (director.ts).

import type { Bus } from '../../bus/index.js';
import { CodedError, hasCode } from '../../errors.js';
import { beforeDeadline, defer, errorOf, messageOf } from '../../lib/index.js';
import type { SideThread } from '../../serve/index.js';
import { ask } from '../ask.js';
import {
  directorAddress,
  loopAddress,
  parseHealth,
  parseVersion,
  type ToUnits,
} from '../protocol.js';
import type { InstanceHealth } from '../types.js';

type Message<Type extends ToUnits['type']> = Extract<ToUnits, { type: Type }>;

/** Time for the thread to report that its deadline has passed, in ms. */
const graceMs = 500;
/** A thread that has nothing left ends by itself within so long, in ms. */
const exitMs = 1000;

interface Side {
  readonly thread: SideThread;
  readonly deployment: number;
  readonly instance: number;
  /** That of its code, once it has started. */
  version: string | undefined;
  /** The number of the thread in the mesh, once it has joined. */
  member: number | undefined;
  /** True: it runs with all that were started with it, and was not asked to end. */
  isRunning: boolean;
}

export interface SideUnitsParts {
  /** The number of the loop. */
  readonly loop: number;
  readonly bus: Bus;
  /** Starts a thread with this number. */
  readonly startThread: (number: number) => SideThread;
}

export class SideUnits {
  readonly #parts: SideUnitsParts;
  readonly #sides = new Set<Side>();
  /** Called with a thread's number in the mesh, by number of the thread. */
  readonly #awaited = new Map<number, (member: number) => void>();
  #lastThread = 0;

  constructor(parts: SideUnitsParts) {
    this.#parts = parts;
  }

  /** True: the message is about an instance in a thread. */
  isFor(message: ToUnits): boolean {
    if (message.type === 'threadHere') return true;
    if (message.type === 'start') return message.on === 'blocking';
    return [...this.#sides].some(({ deployment }) => deployment === message.deployment);
  }

  async handle(message: ToUnits): Promise<unknown> {
    switch (message.type) {
      case 'threadHere':
        return this.#awaited.get(message.thread)?.(message.member);
      case 'start':
        return await this.#start(message);
      case 'replace':
        return await this.#replace(message);
      case 'stop':
        return await this.#stopAll(message);
      case 'health':
        return await this.#health(message);
      case 'exit':
        return undefined; // for threads
      default:
        return await this.#relay(this.#find(message.deployment, message.instance), message);
    }
  }

  #find(deployment: number, instance: number): Side {
    for (const side of this.#sides) {
      if (side.deployment === deployment && side.instance === instance) return side;
    }
    throw new Error(`instance ${instance} is not here any more`);
  }

  /** As `#askOf`; when its thread ends meanwhile, this rejects after the director was notified. */
  async #relay(side: Side, message: ToUnits): Promise<unknown> {
    const died = side.thread.ended.then((error): never => {
      throw new Error(whyEnded(error));
    });
    died.catch(() => {});
    try {
      return await Promise.race([this.#askOf(side, message), died]);
    } catch (error) {
      const isGone = hasCode(error, 'BUS_CONSUMER_LOST') || hasCode(error, 'BUS_NO_HANDLERS');
      if (!isGone) throw error;
      // The channel has ended: maybe before its thread, maybe it belonged to a thread that this one needed.
      const onDeadline = (): Error => asError(error);
      return await beforeDeadline(died, { deadlineMs: exitMs, onDeadline });
    }
  }

  /** Without a limit: the request has deadlines of its own. */
  async #askOf({ member }: Side, message: ToUnits): Promise<unknown> {
    if (member === undefined) throw new Error('its thread is not there yet');
    return await ask(this.#parts.bus, loopAddress(member), message, Infinity);
  }

  /** Starts all or none; resolves with the version of their code. */
  async #start(start: Message<'start'>): Promise<string | undefined> {
    const { deployment, instances, startTimeoutMs } = start;
    const starting = instances.map((instance) => this.#startOne(start, instance));
    const started = await Promise.allSettled(starting);
    const sides = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    const failed = started.find((each) => each.status === 'rejected');
    if (failed === undefined && sides.every((each) => this.#sides.has(each))) {
      for (const each of sides) each.isRunning = true;
      return sides[0]?.version;
    }
    const stop = { type: 'stop', deployment, instances, stopTimeoutMs: startTimeoutMs } as const;
    await this.#stopAll(stop).catch(() => {}); // the first error counts
    throw failed?.reason ?? new Error('the thread of an instance has ended while others started');
  }

  async #startOne(start: Message<'start'>, instance: number): Promise<Side> {
    const { name, deployment, startTimeoutMs } = start;
    const here = defer<number>();
    this.#lastThread += 1;
    const number = this.#lastThread;
    const thread = this.#parts.startThread(number);
    const own = { member: undefined, version: undefined, isRunning: false };
    const side: Side = { thread, deployment, instance, ...own };
    this.#sides.add(side);
    this.#awaited.set(number, here.resolve);
    const died = thread.ended.then((error): never => {
      this.#ended(side, name, error);
      throw new Error(`its thread has ended: ${whyEnded(error)}`);
    });
    died.catch(() => {}); // without a waiter it must not be unhandled
    const begin = async (): Promise<void> => {
      side.member = await here.promise;
      const request: ToUnits = { ...start, instances: [instance], on: 'loop' };
      side.version = parseVersion(await this.#askOf(side, request));
    };
    const onDeadline = (): Error =>
      new Error(`it has not started within ${startTimeoutMs} ms in a thread of its own`);
    const deadlineMs = 2 * startTimeoutMs + graceMs;
    try {
      await beforeDeadline(Promise.race([begin(), died]), { deadlineMs, onDeadline });
      return side;
    } catch (cause) {
      if (cause instanceof CodedError) throw cause;
      const text = `instance ${instance} of ${name} could not start: ${messageOf(cause)}`;
      throw new CodedError('UNIT_START_FAILED', text, { cause });
    } finally {
      this.#awaited.delete(number);
    }
  }

  /** The old thread hands off to a new one, as when the instance moves. Resolves with the version of that. */
  async #replace(replace: Message<'replace'>): Promise<string | undefined> {
    const { deployment, instance, start, stopTimeoutMs } = replace;
    const old = this.#find(deployment, instance);
    const stop: Message<'stop'> = {
      type: 'stop',
      deployment,
      instances: [instance],
      stopTimeoutMs,
    };
    const next = await this.#startOne(start, instance).catch(async (error: unknown) => {
      for (const side of this.#sides) {
        const isNext = side.deployment === deployment && side.instance === instance && side !== old;
        if (isNext) await this.#stop(side, stop).catch(() => {}); // the first error counts
      }
      throw error;
    });
    try {
      const { member = 0 } = next;
      const own = { deployment, instance, to: member };
      const timeouts = { saveTimeoutMs: stopTimeoutMs, restoreTimeoutMs: start.startTimeoutMs };
      await this.#relay(old, { type: 'handOff', ...own, ...timeouts });
    } catch (error) {
      await this.#stop(next, stop).catch(() => {}); // the first error counts
      throw error;
    }
    next.isRunning = true;
    if (!this.#sides.has(next))
      await this.#reportLost(next, start.name, { message: 'it took over before' });
    await this.#stop(old, stop);
    return next.version;
  }

  #ended(side: Side, name: string, error: Ended | undefined): void {
    this.#sides.delete(side);
    if (side.isRunning) this.#reportLost(side, name, error).catch(() => {});
  }

  async #reportLost(
    { deployment, instance }: Side,
    name: string,
    error: Ended | undefined,
  ): Promise<void> {
    const { bus, loop } = this.#parts;
    const text = `the thread of instance ${instance} of ${name} has ended: ${whyEnded(error)}`;
    const own = { deployment, instance, loop, why: text, stack: error?.stack };
    await ask(bus, directorAddress, { type: 'instanceLost', ...own }, Infinity);
  }

  /** Stops all; they are gone even when it rejects, with the first failure. */
  async #stopAll(stop: Message<'stop'>): Promise<void> {
    const ending = [...this.#sides].filter(
      ({ deployment, instance }) =>
        deployment === stop.deployment && stop.instances.includes(instance),
    );
    const ended = await Promise.allSettled(ending.map((each) => this.#stop(each, stop)));
    const failed = ended.find((each) => each.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  async #stop(side: Side, stop: Message<'stop'>): Promise<void> {
    const { instance, thread } = side;
    const { stopTimeoutMs } = stop;
    side.isRunning = false;
    const onDeadline = (): CodedError => {
      const text = `instance ${instance} did not stop within ${stopTimeoutMs} ms: its thread was ended`;
      return new CodedError('UNIT_STOP_FAILED', text);
    };
    const deadlineMs = stopTimeoutMs + graceMs;
    const gone = thread.ended.then(() => {});
    // It has not joined yet: nothing has begun in it.
    if (side.member === undefined) {
      thread.end();
      return await gone;
    }
    const asked = this.#askOf(side, { ...stop, instances: [instance] });
    let leaveMs = exitMs;
    try {
      await beforeDeadline(Promise.race([asked, gone]), { deadlineMs, onDeadline });
      leaveMs = Math.max(exitMs, stopTimeoutMs); // it answers, and may have to pass on replies
    } finally {
      await this.#exit(side, leaveMs).catch(() => {});
      thread.end();
      await gone;
    }
  }

  /** Peers read what it has sent before its thread ends. */
  async #exit(side: Side, deadlineMs: number): Promise<void> {
    const exiting = this.#askOf(side, { type: 'exit', deployment: side.deployment });
    const exited = Promise.race([exiting.then(() => side.thread.ended), side.thread.ended]);
    await beforeDeadline(exited, { deadlineMs, onDeadline: () => new Error('it stays') });
  }

  async #health({ deployment, timeoutMs }: Message<'health'>): Promise<InstanceHealth[]> {
    const own = [...this.#sides].filter((each) => each.deployment === deployment);
    const asked = own.map(async (side): Promise<readonly InstanceHealth[]> => {
      const onDeadline = (): Error => new Error(`it has not answered within ${timeoutMs} ms`);
      const message = { type: 'health', deployment, timeoutMs } as const;
      try {
        const deadline = { deadlineMs: timeoutMs, onDeadline };
        return parseHealth(await beforeDeadline(this.#askOf(side, message), deadline));
      } catch (error) {
        return [{ instance: side.instance, isWell: false, detail: messageOf(error) }];
      }
    });
    return (await Promise.all(asked)).flat();
  }

  /** Stops all of them, because the loop ends. Never rejects. */
  async endAll(timeoutMs: number): Promise<void> {
    const deadlineMs = Math.max(1, timeoutMs - graceMs - exitMs);
    const all = [...this.#sides].map((side) =>
      this.#stop(side, {
        type: 'stop',
        deployment: side.deployment,
        instances: [side.instance],
        stopTimeoutMs: deadlineMs,
      }).catch((error: unknown) => {
        process.emitWarning(error instanceof Error ? error : String(error));
      }),
    );
    await Promise.all(all);
  }
}

/** An error that ended a thread. */
interface Ended {
  readonly message: string;
  readonly stack?: string | undefined;
}

function whyEnded(error: Ended | undefined): string {
  return error?.message ?? 'it called process.exit()';
}

function asError(error: unknown): Error {
  return errorOf(error);
}
