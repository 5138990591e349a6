// A unit with memory: makes it, keeps what it receives, passes it on, and reports its content.

import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { run, shared, type UnitContext } from '../../../src/public.js';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

/** Requests to an instance; bytes are those that it keeps under a name. */
export type Question =
  | { readonly type: 'make'; readonly name: string; readonly sizeBytes: number }
  | { readonly type: 'makePlain'; readonly name: string; readonly sizeBytes: number }
  | { readonly type: 'keep'; readonly name: string; readonly bytes: unknown }
  | { readonly type: 'give'; readonly name: string; readonly to: number }
  | { readonly type: 'give back'; readonly name: string }
  | { readonly type: 'write'; readonly name: string; readonly value: number }
  | { readonly type: 'read'; readonly name: string }
  | { readonly type: 'drop'; readonly name: string }
  | { readonly type: 'fill in worker'; readonly name: string; readonly value: number }
  | { readonly type: 'write in worker'; readonly name: string; readonly value: number }
  | { readonly type: 'make in worker'; readonly name: string; readonly sizeBytes: number }
  | { readonly type: 'own memory' };

function ownKib(): number {
  const [, kib] = /^RssAnon:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return Number(kib);
}

/** Returns the value of all bytes if the first and the last are the same. */
function valueIn(bytes: Uint8Array): number | undefined {
  const [first] = bytes;
  return bytes.every((byte) => byte === first) ? first : undefined;
}

export function start({ bus, instance }: UnitContext): void {
  const kept = new Map<string, Uint8Array>();
  const at = (name: string): Uint8Array => {
    const bytes = kept.get(name);
    if (bytes === undefined) throw new Error(`nothing is kept as ${name}`);
    return bytes;
  };
  const answer = async (question: Question): Promise<unknown> => {
    switch (question.type) {
      case 'make':
        kept.set(question.name, shared(question.sizeBytes));
        return;
      case 'makePlain':
        kept.set(question.name, Buffer.alloc(question.sizeBytes, 1));
        return;
      case 'keep': {
        const { name, bytes } = question;
        const found = bytes instanceof Map ? bytes.get('bytes') : bytes;
        if (!(found instanceof Uint8Array)) throw new TypeError('no bytes came');
        kept.set(name, found);
        return;
      }
      case 'give': {
        const { name, to } = question;
        const keep = { type: 'keep', name, bytes: at(name) };
        await bus.request(`memory ${to}`, keep);
        return;
      }
      case 'give back':
        return at(question.name);
      case 'write':
        at(question.name).fill(question.value);
        return;
      case 'read':
        return valueIn(at(question.name));
      case 'drop':
        kept.delete(question.name);
        return;
      case 'fill in worker': {
        const { name, value } = question;
        await run((bytes, filled) => void bytes.fill(filled), at(name), value);
        return;
      }
      case 'write in worker': {
        const { name, value } = question;
        const writing = run(
          async (bytes, filled) => {
            for (;;) {
              bytes.fill(filled);
              await new Promise((resolve) => setImmediate(resolve));
            }
          },
          at(name),
          value,
        );
        writing.catch(() => {}); // it ends with this loop
        return;
      }
      case 'make in worker': {
        const { name, sizeBytes } = question;
        kept.set(name, await run((size) => shared(size).fill(5), sizeBytes));
        return;
      }
      case 'own memory':
        collect();
        return ownKib();
    }
  };
  bus.consumer<Question>(`memory ${instance}`, async (message) => {
    message.reply(await answer(message.body));
  });
  bus.consumer(`collect ${instance}`, (message) => {
    collect();
    message.reply(undefined);
  });
  bus.consumer<Uint8Array>('size', (message) => message.reply(message.body.byteLength));
  bus.consumer<{ to: number; count: number; sizeBytes: number }>(
    `flood ${instance}`,
    async (message) => {
      const { to, count, sizeBytes } = message.body;
      const body = new Uint8Array(sizeBytes);
      for (let sent = 0; sent < count; sent += 1) {
        body.fill(sent);
        await bus.request(`echo ${to}`, body);
      }
      message.reply(undefined);
    },
  );
  bus.consumer<Uint8Array>(`echo ${instance}`, (message) => message.reply(message.body));
}
