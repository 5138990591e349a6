// Reader of the symbols of an executable: elf(5), 64 bits, little-endian, the format of Node on Linux. The file
// is untrusted input and may end anywhere. Entries that do not fit are skipped, and nothing here throws because
// of the content of the file.
// Not here: the choice of symbols (symbols.ts), the memory at their addresses (memory.ts).

/** Reads up to `lengthBytes` bytes from `offset` on; fewer at the end of the file or above the size limit. */
export type ReadAt = (offset: number, lengthBytes: number) => Buffer;

export interface ElfFile {
  /** Entry point, before relocation. */
  readonly entry: number;
  readonly sections: readonly Section[];
}

interface Section {
  readonly type: number;
  readonly offset: number;
  readonly sizeBytes: number;
  /** For a symbol table: the number of the section with its names. */
  readonly link: number;
}

/** A `static` variable, visible in its object file alone, whose initial value is 0. */
export interface ElfVariable {
  readonly name: string;
  readonly address: number;
  readonly sizeBytes: number;
}

const headerBytes = 64;
const sectionBytes = 64;
const symbolBytes = 24;
const sectionType = { symbols: 2, strings: 3, zeroes: 8, dynamicSymbols: 11 };
/** The low half of the `info` byte of a symbol; the high half is 0, "local". */
const variableType = 1;
/** Limit for a damaged file: no real executable has more symbols. */
const maxSymbols = 10_000_000;
const symbolsAtOnce = 64 * 1024;

/** Parses the headers; `undefined`: the file is no executable of this kind. */
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

/** True: the file has no symbol table for the linker (`strip`). */
export function isStripped({ sections }: ElfFile): boolean {
  return !sections.some(({ type }) => type === sectionType.symbols);
}

/**
 * Finds the variables with one of these names and its size. Sizes and sections are compared first: few variables
 * match, and each name costs another read.
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
  const count = Math.min(Math.floor(sizeBytes / symbolBytes), maxSymbols);
  for (let first = 0; first < count; first += symbolsAtOnce) {
    const bytes = read(
      offset + first * symbolBytes,
      Math.min(symbolsAtOnce, count - first) * symbolBytes,
    );
    for (let at = 0; at + symbolBytes <= bytes.length; at += symbolBytes) {
      // The hot line: of 100,000 symbols few pass it.
      if (bytes[at + 4] !== variableType || !sizes.has(bytes.readUInt32LE(at + 16))) continue;
      const size = wordAt(bytes, at + 16);
      const isZeroed = sections[bytes.readUInt16LE(at + 6)]?.type === sectionType.zeroes;
      if (!isZeroed || !sizes.has(size)) continue;
      yield { nameAt: bytes.readUInt32LE(at), address: wordAt(bytes, at + 8), sizeBytes: size };
    }
    if (bytes.length === 0) return; // the file ends within its table
  }
}

/** True: `name` is among the names for the dynamic linker, which `strip` keeps. */
export function hasDynamicName(read: ReadAt, { sections }: ElfFile, name: string): boolean {
  return sections
    .filter(({ type }) => type === sectionType.dynamicSymbols)
    .some(({ link }) => {
      const names = sections[link];
      if (names?.type !== sectionType.strings) return false;
      return read(names.offset, names.sizeBytes).includes(`\0${name}\0`);
    });
}

/** A 64-bit word; a value above all offsets becomes an offset past the end. */
function wordAt(bytes: Buffer, at: number): number {
  const word = Number(bytes.readBigUInt64LE(at));
  return Number.isSafeInteger(word) ? word : Number.MAX_SAFE_INTEGER;
}
