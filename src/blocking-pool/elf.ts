// Symbols of an executable, as elf(5) lays them out: 64 bits, little-endian, what Node is shipped for on
// Linux. The file is input: anybody may have written it, and it may end anywhere. Whatever does not fit
// is no symbol, and nothing here throws because of what the file says.
// Not here: which symbols are wanted and why (symbols.ts), the memory that they name (memory.ts).

/** Up to `lengthBytes` bytes from `offset` on; fewer where the file ends, or where nobody believes it. */
export type ReadAt = (offset: number, lengthBytes: number) => Buffer;

export interface ElfFile {
  /** Where the program begins, before it was moved to its place in memory. */
  readonly entry: number;
  readonly sections: readonly Section[];
}

interface Section {
  readonly type: number;
  readonly offset: number;
  readonly sizeBytes: number;
  /** Of a table of symbols: the number of the section with their names. */
  readonly link: number;
}

/** A variable that only its own object file knows, as `static` makes it, and that begins as 0. */
export interface ElfVariable {
  readonly name: string;
  readonly address: number;
  readonly sizeBytes: number;
}

const headerBytes = 64;
const sectionBytes = 64;
const symbolBytes = 24;
const sectionType = { symbols: 2, strings: 3, zeroes: 8, dynamicSymbols: 11 };
/** In the low half of a symbol's `info` byte, and 0, "local", in the high half. */
const variableType = 1;
/** No executable that was ever built has more. */
const mostSymbols = 10_000_000;
const symbolsAtOnce = 64 * 1024;

/** `undefined` for what is no executable of this kind. */
export function readElf(read: ReadAt): ElfFile | undefined {
  const header = read(0, headerBytes);
  if (header.length < headerBytes || header.readUInt32BE(0) !== 0x7f454c46) return undefined;
  const [bits, order] = [header[4], header[5]];
  if (bits !== 2 || order !== 1 || header.readUInt16LE(58) !== sectionBytes) return undefined;
  const table = read(wordAt(header, 40), sectionBytes * header.readUInt16LE(60));
  const sections: Section[] = [];
  for (let at = 0; at + sectionBytes <= table.length; at += sectionBytes) {
    sections.push({
      type: table.readUInt32LE(at + 4),
      offset: wordAt(table, at + 24),
      sizeBytes: wordAt(table, at + 32),
      link: table.readUInt32LE(at + 40),
    });
  }
  return { entry: wordAt(header, 24), sections };
}

/** Whether the file was stripped of the names that only its linker needs. */
export function isStripped({ sections }: ElfFile): boolean {
  return !sections.some(({ type }) => type === sectionType.symbols);
}

/**
 * The variables that have one of these names and its size. Sizes and sections come first, because few
 * variables have them: names lie elsewhere in the file, and each costs a read.
 */
export function findVariables(
  read: ReadAt,
  { sections }: ElfFile,
  wanted: ReadonlyMap<string, number>,
): ElfVariable[] {
  const sizes = new Set(wanted.values());
  const longest = Math.max(...[...wanted.keys()].map((name) => name.length));
  const found: ElfVariable[] = [];
  for (const section of sections.filter(({ type }) => type === sectionType.symbols)) {
    const names = sections[section.link];
    if (names?.type !== sectionType.strings) continue;
    for (const { nameAt, address, sizeBytes } of variablesIn(read, sections, section, sizes)) {
      const text = read(names.offset + nameAt, longest + 1).toString('latin1');
      const end = text.indexOf('\0');
      const name = end < 0 ? '' : text.slice(0, end);
      if (wanted.get(name) === sizeBytes) found.push({ name, address, sizeBytes });
    }
  }
  return found;
}

function* variablesIn(
  read: ReadAt,
  sections: readonly Section[],
  { offset, sizeBytes }: Section,
  sizes: ReadonlySet<number>,
): Generator<{ nameAt: number; address: number; sizeBytes: number }> {
  const count = Math.min(Math.floor(sizeBytes / symbolBytes), mostSymbols);
  for (let first = 0; first < count; first += symbolsAtOnce) {
    const bytes = read(
      offset + first * symbolBytes,
      Math.min(symbolsAtOnce, count - first) * symbolBytes,
    );
    for (let at = 0; at + symbolBytes <= bytes.length; at += symbolBytes) {
      // Of 100,000 symbols few come further than this: it is what the time goes into.
      if (bytes[at + 4] !== variableType || !sizes.has(bytes.readUInt32LE(at + 16))) continue;
      const size = wordAt(bytes, at + 16);
      const isZeroed = sections[bytes.readUInt16LE(at + 6)]?.type === sectionType.zeroes;
      if (!isZeroed || !sizes.has(size)) continue;
      yield { nameAt: bytes.readUInt32LE(at), address: wordAt(bytes, at + 8), sizeBytes: size };
    }
    if (bytes.length === 0) return; // the file ends before its table does
  }
}

/** Whether the names for the dynamic linker, which are never stripped, have this one. */
export function hasDynamicName(read: ReadAt, { sections }: ElfFile, name: string): boolean {
  return sections
    .filter(({ type }) => type === sectionType.dynamicSymbols)
    .some(({ link }) => {
      const names = sections[link];
      if (names?.type !== sectionType.strings) return false;
      return read(names.offset, names.sizeBytes).includes(`\0${name}\0`);
    });
}

/** 64 bits; what is larger than any offset becomes one that nothing lies at. */
function wordAt(bytes: Buffer, at: number): number {
  const word = Number(bytes.readBigUInt64LE(at));
  return Number.isSafeInteger(word) ? word : Number.MAX_SAFE_INTEGER;
}
