// The chat of examples/chat as its users start it, and guests of it: clients that note what they hear.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import { command, deadlineMs } from '../cli/serving.js';
import { waitFor } from '../support/index.js';

export const chat = fileURLToPath(new URL('../../../examples/chat/chat.js', import.meta.url));

/** `manycore run chat.js`, once it listens. */
export async function startChat(
  t: TestContext,
  flags: readonly string[],
  config: Readonly<Record<string, unknown>> = {},
) {
  const json = JSON.stringify({ port: 0, ...config });
  const child = spawn(process.execPath, [command, 'run', chat, '--config', json, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  const line = await waitFor(
    () => lines.find((each) => each.startsWith('listening on ')),
    deadlineMs,
  );
  return { child, port: Number(line.split(':').at(-1)) };
}

interface Heard {
  readonly hello?: { readonly instance: number; readonly pid: number };
  readonly entered?: string;
  readonly names?: readonly string[];
  readonly said?: { readonly name: string; readonly text: string };
  readonly error?: string;
}

export class Guest {
  readonly name: string;
  readonly socket: WebSocket;
  readonly heard: Heard[] = [];
  /** With the code of the WebSocket. */
  readonly closed: Promise<number>;

  constructor(port: number, name: string) {
    this.name = name;
    this.socket = new WebSocket(`ws://127.0.0.1:${port}`);
    this.socket.on('error', () => {}); // it is closed then
    this.closed = new Promise((resolve) => this.socket.on('close', resolve));
    this.socket.on('message', (bytes) => this.heard.push(JSON.parse(String(bytes))));
  }

  /** Once it knows with whom it speaks. */
  static async open(t: TestContext, port: number, name: string): Promise<Guest> {
    const guest = new Guest(port, name);
    t.after(() => guest.socket.terminate());
    await Promise.race([once(guest.socket, 'message'), guest.closed]);
    if (guest.heard.length > 0) return guest;
    throw new Error(`${name} was not let in`);
  }

  /** Which instance of which process it is connected to. */
  get place(): string {
    const hello = this.heard[0]?.hello;
    return `${hello?.pid} ${hello?.instance}`;
  }

  get pid(): number {
    return this.heard[0]?.hello?.pid ?? Number.NaN;
  }

  /** As it heard them last. */
  get names(): readonly string[] {
    return this.heard.findLast(({ names }) => names !== undefined)?.names ?? [];
  }

  /** What it heard this one say. */
  from(name: string): string[] {
    return this.heard.flatMap(({ said }) => (said?.name === name ? [said.text] : []));
  }

  /** Until this is what it heard said last. */
  async hears(text: string): Promise<void> {
    const last = (): string | undefined => this.heard.findLast(({ said }) => said)?.said?.text;
    while (last() !== text) await once(this.socket, 'message');
  }

  async enter(room: string): Promise<void> {
    this.send({ enter: room, name: this.name });
    await waitFor(() => this.heard.some(({ entered }) => entered === room));
  }

  say(text: string): void {
    this.send({ say: text });
  }

  send(value: unknown): void {
    this.socket.send(JSON.stringify(value));
  }
}

/** Guests in the lobby, one at each of so many instances that listen on these ports. */
export async function guestsAtAll(
  t: TestContext,
  ports: readonly number[],
  instances: number,
): Promise<Guest[]> {
  const found = new Map<string, Guest>();
  const others: Guest[] = []; // stay until all are found: who opens and closes gets the same place again
  let next = 0;
  await waitFor(async () => {
    const port = ports[next % ports.length] ?? Number.NaN;
    next += 1;
    const guest = await Guest.open(t, port, `guest ${next}`);
    if (found.has(guest.place)) others.push(guest);
    else found.set(guest.place, guest);
    return found.size === instances;
  }, deadlineMs);
  for (const guest of others) guest.socket.close();
  const guests = [...found.values()];
  await Promise.all(guests.map((guest) => guest.enter('lobby')));
  return guests;
}

/** Until each of them sees exactly these names, each once. */
export async function allSee(guests: readonly Guest[], names: readonly string[]): Promise<void> {
  const wanted = [...new Set(names)].sort().join();
  await waitFor(() => guests.every((guest) => guest.names.join() === wanted), deadlineMs);
}

/** Each says some things; resolves with what is wrong in what the others heard of that. */
export async function whatIsMisheard(guests: readonly Guest[]): Promise<string[]> {
  const texts = ['one', 'two', 'three', 'that is all'];
  for (const guest of guests) for (const text of texts) guest.say(text);
  const last = texts.at(-1) ?? '';
  await waitFor(
    () => guests.every((guest) => guests.every(({ name }) => guest.from(name).includes(last))),
    deadlineMs,
  );
  return guests.flatMap((guest) =>
    guests
      .map(({ name }) => `${name} to ${guest.name}: ${guest.from(name)}`)
      .filter((line) => !line.endsWith(`: ${texts}`)),
  );
}
