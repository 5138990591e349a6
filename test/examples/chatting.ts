// The chat of examples/chat as its users start it, and its guests: clients that keep received messages.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import { command, deadlineMs } from '../cli/serving.js';
import { waitFor } from '../support/index.js';

export const chat = fileURLToPath(new URL('../../../examples/chat/chat.js', import.meta.url));

/** Starts `manycore run chat.js`; resolves once it listens. */
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

interface ServerMessage {
  readonly hello?: { readonly instance: number; readonly pid: number };
  readonly entered?: string;
  readonly names?: readonly string[];
  readonly said?: { readonly name: string; readonly text: string };
  readonly error?: string;
}

export class Guest {
  readonly name: string;
  readonly socket: WebSocket;
  readonly messages: ServerMessage[] = [];
  /** Resolves with the code of the WebSocket. */
  readonly closed: Promise<number>;

  constructor(port: number, name: string) {
    this.name = name;
    this.socket = new WebSocket(`ws://127.0.0.1:${port}`);
    this.socket.on('error', () => {}); // it is closed then
    this.closed = new Promise((resolve) => this.socket.on('close', resolve));
    this.socket.on('message', (bytes) => this.messages.push(JSON.parse(String(bytes))));
  }

  /** Resolves with the first message of the server. */
  static async open(t: TestContext, port: number, name: string): Promise<Guest> {
    const guest = new Guest(port, name);
    t.after(() => guest.socket.terminate());
    await Promise.race([once(guest.socket, 'message'), guest.closed]);
    if (guest.messages.length > 0) return guest;
    throw new Error(`${name} was not let in`);
  }

  /** Process and instance at the other end. */
  get place(): string {
    const hello = this.messages[0]?.hello;
    return `${hello?.pid} ${hello?.instance}`;
  }

  get pid(): number {
    return this.messages[0]?.hello?.pid ?? Number.NaN;
  }

  /** Names in the room, as received last. */
  get names(): readonly string[] {
    return this.messages.findLast(({ names }) => names !== undefined)?.names ?? [];
  }

  /** Texts received from the guest with this name. */
  from(name: string): string[] {
    return this.messages.flatMap(({ said }) => (said?.name === name ? [said.text] : []));
  }

  /** Waits until this is the last received text. */
  async receives(text: string): Promise<void> {
    const last = (): string | undefined => this.messages.findLast(({ said }) => said)?.said?.text;
    while (last() !== text) await once(this.socket, 'message');
  }

  async enter(room: string): Promise<void> {
    this.send({ enter: room, name: this.name });
    await waitFor(() => this.messages.some(({ entered }) => entered === room));
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
  const others: Guest[] = []; // stay open until all are found: the freed place would be assigned again
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

/** Waits until each guest sees exactly these names, each once. */
export async function allSee(guests: readonly Guest[], names: readonly string[]): Promise<void> {
  const wanted = [...new Set(names)].sort().join();
  await waitFor(() => guests.every((guest) => guest.names.join() === wanted), deadlineMs);
}

/** Sends some texts from each guest; resolves with the errors in what the guests received. */
export async function deliveryErrors(guests: readonly Guest[]): Promise<string[]> {
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
