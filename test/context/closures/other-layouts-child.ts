// Writes other numbers over the layout that V8 exports for debuggers, in the memory of this process, and makes a
// native reader for each. Prints a line before each, so that a crash has a name, and one with the result.

import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { makeReader } from '../../../src/context/closures/closure-reader.js';
import type { NativeClosureReader } from '../../../src/native.js';

/** Symbols that the reader needs, each of which may have another name. */
const numbers = [
  ['v8dbg_class_JSFunction__context__Context', 'v8dbg_class_JSFunction__context__Tagged_Context_'],
  ['v8dbg_context_idx_prev'],
  ['v8dbg_context_min_slots'],
  ['v8dbg_class_Map__instance_type__uint16_t'],
  ['v8dbg_FirstNonstringType'],
];
/** Without these the inspector reads the scopes of modules. */
const types = [
  ['v8dbg_type_SourceTextModule__SOURCE_TEXT_MODULE_TYPE'],
  ['v8dbg_type_FixedArray__FIXED_ARRAY_TYPE'],
  ['v8dbg_type_Cell__CELL_TYPE'],
  ['v8dbg_type_ScriptContextTable__SCRIPT_CONTEXT_TABLE_TYPE'],
];
const functions = [
  ['_ZNK2v88Function8ScriptIdEv'],
  ['_ZNK2v88Function22GetScriptStartPositionEv', '_ZNK2v88Function19GetScriptLineNumberEv'],
];
const wrongNumbers = [
  ...[-(2 ** 31), -16, -8, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 36, 40, 48, 56, 64],
  ...[72, 80, 127, 128, 160, 255, 256, 4096, 65_535, 65_536, 2 ** 20, 2 ** 28, 2 ** 31 - 1],
];

interface Symbol {
  readonly address: number;
  readonly nameAddress: number;
}

/** The dynamic symbols of this executable: elf(5). */
function symbolsOf(file: Buffer): Map<string, Symbol> {
  const base = file.readUInt16LE(16) === 2 ? 0 : baseAddress();
  const word = (at: number): number => Number(file.readBigUInt64LE(at));
  const header = (section: number): number => word(40) + 64 * section;
  const found = new Map<string, Symbol>();
  for (let section = 0; section < file.readUInt16LE(60); section += 1) {
    if (file.readUInt32LE(header(section) + 4) !== 11) continue;
    const names = header(file.readUInt32LE(header(section) + 40));
    const end = word(header(section) + 24) + word(header(section) + 32);
    for (let at = word(header(section) + 24); at < end; at += 24) {
      const nameAt = word(names + 24) + file.readUInt32LE(at);
      const name = file.toString('latin1', nameAt, file.indexOf(0, nameAt));
      if (!wanted.has(name)) continue;
      const nameAddress = base + word(names + 16) + file.readUInt32LE(at);
      found.set(name, { address: base + word(at + 8), nameAddress });
    }
  }
  return found;
}

const wanted = new Set([...numbers, ...types, ...functions].flat());

/** Address of the executable, where that may be anywhere. */
function baseAddress(): number {
  return Number.parseInt(readFileSync('/proc/self/maps', 'latin1'), 16);
}

const symbols = symbolsOf(readFileSync(process.execPath));
const memory = openSync('/proc/self/mem', 'r+');

/** Puts these bytes at each address while `body` runs. */
function withBytes(addresses: readonly number[], bytes: Buffer, body: () => void): void {
  const before = addresses.map((address) => {
    const old = Buffer.alloc(bytes.length);
    readSync(memory, old, 0, old.length, address);
    writeSync(memory, bytes, 0, bytes.length, address);
    return old;
  });
  body();
  for (const [at, address] of addresses.entries()) {
    writeSync(memory, before[at] ?? bytes, 0, bytes.length, address);
  }
}

function print(what: string, result: string): void {
  writeSync(1, `${what}: ${result}\n`);
}

/** The problem of a reader that is made now; without one, what it reads. */
function tryReader(): string {
  const made = makeReader();
  if ('problem' in made) return made.problem;
  const [text, half] = ['text', 0.5];
  const fn = (): unknown[] => [text, half];
  const values: unknown[] = [];
  const isRead = made.reader.readOnce(fn, ['text', 'half'], values);
  if (!isRead || values[0] !== text || values[1] !== half) return 'wrong';
  return readsScopes(made.reader, fn, { text, half, print, fileURLToPath })
    ? 'right'
    : 'wrong scopes';
}

/** True: all variables around `fn` are read, with these among them, or none. */
function readsScopes(
  reader: NativeClosureReader,
  fn: () => unknown,
  held: Readonly<Record<string, unknown>>,
): boolean {
  reader.scriptContexts(fn);
  const learnt = reader.learnScopes(fn);
  if (learnt === null) return true;
  const values: unknown[] = [];
  if (reader.readScopes(fn, fn, undefined, values) !== learnt.number) return false;
  const names = learnt.names.flat();
  return Object.entries(held).every(([name, value]) => values[names.indexOf(name)] === value);
}

const addressesOf = (names: readonly string[], of: keyof Symbol): number[] =>
  names.flatMap((name) => symbols.get(name)?.[of] ?? []);

if (![...numbers, ...functions].every((names) => names.some((name) => symbols.has(name)))) {
  print('none', 'this runtime exports no layout');
} else {
  print('as it is', tryReader());
  for (const names of [...numbers, ...types]) {
    for (const number of wrongNumbers) {
      const bytes = Buffer.alloc(4);
      bytes.writeInt32LE(number);
      print(`${names[0]} = ${number}`, 'begun');
      withBytes(addressesOf(names, 'address'), bytes, () => {
        print(`${names[0]} = ${number}`, tryReader());
      });
    }
  }
  for (const names of [...numbers, ...types, ...functions]) {
    withBytes(addressesOf(names, 'nameAddress'), Buffer.from('x'), () => {
      print(`without ${names[0]}`, tryReader());
    });
  }
  print('as it is', tryReader());
}
closeSync(memory);
