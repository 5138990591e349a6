// The reader of executables: its results for a small one; no file makes it throw or read for ever.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  findVariables,
  hasDynamicName,
  isStripped,
  type ReadAt,
  readElf,
} from '../../src/blocking-pool/elf.js';
import { random } from '../support/index.js';

const wanted = new Map([
  ['wq', 16],
  ['nthreads', 4],
]);

/** Entry of a table of symbols; missing values are those of a local variable. */
interface Entry {
  readonly name: string;
  readonly sizeBytes: number;
  readonly address?: number;
  readonly info?: number;
  readonly section?: number;
}

/** A file with a table of symbols and one of dynamic names, laid out as in elf(5). */
function fileWith(entries: readonly Entry[], dynamicNames: readonly string[] = []): Buffer {
  const names = Buffer.from(['', ...entries.map(({ name }) => name), ''].join('\0'), 'latin1');
  const dynamic = Buffer.from(['', ...dynamicNames, ''].join('\0'), 'latin1');
  const symbols = Buffer.alloc(24 * entries.length);
  let nameAt = 1;
  for (const [
    at,
    { name, sizeBytes, address = 0x1000, info = 1, section = 5 },
  ] of entries.entries()) {
    symbols.writeUInt32LE(nameAt, 24 * at);
    symbols[24 * at + 4] = info;
    symbols.writeUInt16LE(section, 24 * at + 6);
    symbols.writeBigUInt64LE(BigInt(address), 24 * at + 8);
    symbols.writeBigUInt64LE(BigInt(sizeBytes), 24 * at + 16);
    nameAt += name.length + 1;
  }
  const bodies = [Buffer.alloc(0), symbols, names, Buffer.alloc(0), dynamic, Buffer.alloc(0)];
  const types = [0, 2, 3, 11, 3, 8];
  const links = [0, 2, 0, 4, 0, 0];
  const header = Buffer.alloc(64);
  header.write('\x7fELF\x02\x01', 'latin1');
  header.writeBigUInt64LE(0x400123n, 24);
  header.writeUInt16LE(64, 58);
  header.writeUInt16LE(bodies.length, 60);
  let offset = 64;
  const table = Buffer.alloc(64 * bodies.length);
  for (const [at, body] of bodies.entries()) {
    table.writeUInt32LE(types[at] ?? 0, 64 * at + 4);
    table.writeBigUInt64LE(BigInt(offset), 64 * at + 24);
    table.writeBigUInt64LE(BigInt(body.length), 64 * at + 32);
    table.writeUInt32LE(links[at] ?? 0, 64 * at + 40);
    offset += body.length;
  }
  header.writeBigUInt64LE(BigInt(offset), 40);
  return Buffer.concat([header, ...bodies, table]);
}

function readerOf(file: Buffer): ReadAt {
  return (offset, lengthBytes) => file.subarray(offset, offset + Math.min(lengthBytes, 2 ** 24));
}

function variablesOf(file: Buffer): unknown[] {
  const read = readerOf(file);
  const elf = readElf(read);
  return elf === undefined ? [] : findVariables(read, elf, wanted);
}

test('the wanted variables are found, with their addresses', () => {
  const file = fileWith([
    { name: 'other', sizeBytes: 8 },
    { name: 'wq', sizeBytes: 16, address: 0x566f900 },
    { name: 'nthreads', sizeBytes: 4, address: 0x566f948 },
  ]);
  assert.equal(readElf(readerOf(file))?.entry, 0x400123);
  assert.deepEqual(variablesOf(file), [
    { name: 'wq', address: 0x566f900, sizeBytes: 16 },
    { name: 'nthreads', address: 0x566f948, sizeBytes: 4 },
  ]);
});

for (const [what, entry] of [
  ['of another size', { name: 'wq', sizeBytes: 4 }],
  ['whose name begins alike', { name: 'wqueue', sizeBytes: 16 }],
  ['of all objects', { name: 'wq', sizeBytes: 16, info: 0x11 }],
  ['that is a function', { name: 'wq', sizeBytes: 16, info: 2 }],
  ['from elsewhere', { name: 'wq', sizeBytes: 16, section: 0 }],
  ['with a value of its own', { name: 'wq', sizeBytes: 16, section: 3 }],
] as const) {
  test(`a symbol ${what} is none of them`, () =>
    assert.deepEqual(variablesOf(fileWith([entry])), []));
}

test('names for the dynamic linker are read whole, and a file without symbols is stripped', () => {
  const file = fileWith([], ['node_start', 'start']);
  const read = readerOf(file);
  const elf = readElf(read) ?? assert.fail('it is an executable');
  assert.ok(hasDynamicName(read, elf, 'start'));
  assert.ok(!hasDynamicName(read, elf, 'node'));
  assert.ok(!isStripped(elf));
  file.writeUInt32LE(0, file.length - 6 * 64 + 64 + 4); // the type of the second section
  assert.ok(isStripped(readElf(read) ?? assert.fail('it is an executable still')));
});

for (const [what, change] of [
  ['another magic', (file: Buffer) => file.writeUInt8(0x7e, 0)],
  ['32 bits', (file: Buffer) => file.writeUInt8(1, 4)],
  ['another byte order', (file: Buffer) => file.writeUInt8(2, 5)],
  ['sections of another size', (file: Buffer) => file.writeUInt16LE(40, 58)],
] as const) {
  test(`a file with ${what} is no executable`, () => {
    const file = fileWith([]);
    change(file);
    assert.equal(readElf(readerOf(file)), undefined);
  });
}

test('files that end anywhere or have any bytes changed are read without an error', (t) => {
  const { integer, pick, bytes } = random(t);
  const whole = fileWith(
    [
      { name: 'wq', sizeBytes: 16 },
      { name: 'nthreads', sizeBytes: 4 },
    ],
    ['start'],
  );
  for (let round = 0; round < 20_000; round += 1) {
    const file = Buffer.from(whole.subarray(0, pick([whole.length, integer(0, whole.length)])));
    for (let change = integer(0, 6); change > 0 && file.length > 0; change -= 1) {
      const [at, length] = [integer(0, file.length), pick([1, 2, 4, 8])];
      pick([bytes(length), Buffer.alloc(length, 0xff), Buffer.alloc(length)]).copy(file, at);
    }
    const read = readerOf(file);
    const elf = readElf(read);
    if (elf === undefined) continue;
    for (const { name, sizeBytes, address } of findVariables(read, elf, wanted)) {
      assert.equal(wanted.get(name), sizeBytes);
      assert.ok(Number.isSafeInteger(address));
    }
    hasDynamicName(read, elf, 'start');
  }
});

test('arbitrary bytes are read without an error', (t) => {
  const { integer, bytes } = random(t);
  for (let round = 0; round < 2000; round += 1) {
    const file = Buffer.concat([Buffer.from('\x7fELF\x02\x01', 'latin1'), bytes(integer(0, 300))]);
    variablesOf(file);
  }
});
