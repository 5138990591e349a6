// The parts of examples/plagiarism with their types. The example is plain JavaScript, which the compiler
// does not see, so what it exports is written down here, once.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

interface Tokens {
  readonly codes: Uint8Array;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  readonly errorCount: number;
  readonly declarationCount: number;
}

export interface Problem {
  readonly kind: string;
  readonly reason: string;
}

export interface Program {
  readonly codes: Uint8Array;
  readonly fingerprints: Uint32Array;
}

interface Document {
  readonly program?: Program;
  readonly places?: { readonly starts: Uint32Array; readonly lineStarts: Uint32Array };
  readonly problem?: Problem;
}

/** `[startA, startB, tokens]` */
export type Tile = readonly [startA: number, startB: number, tokens: number];

export interface Comparison {
  readonly similarity: number;
  readonly containment: number;
  readonly tokens: number;
  readonly tiles: readonly Tile[];
}

export interface SourceFile {
  readonly path: string;
  readonly text?: string;
  readonly note?: string;
  readonly problem?: Problem;
}

interface Range {
  readonly firstLine: number;
  readonly firstColumn: number;
  readonly lastLine: number;
  readonly lastColumn: number;
}

interface Pair {
  readonly rank: number;
  readonly a: string;
  readonly b: string;
  readonly similarity: number;
  readonly containment: number;
  readonly tokens: number;
  readonly matches: readonly { readonly tokens: number; readonly a: Range; readonly b: Range }[];
}

export interface Report {
  readonly folder: string;
  readonly threshold: number;
  readonly by: string;
  readonly leastTokens: number;
  readonly leastMatchTokens: number;
  readonly fileCount: number;
  readonly comparedCount: number;
  readonly pairCount: number;
  readonly files: readonly {
    readonly path: string;
    readonly tokens: number;
    readonly note?: string;
  }[];
  readonly problems: readonly (Problem & { readonly path: string })[];
  readonly pairs: readonly Pair[];
}

/** Imports a file of the example; the caller declares its type. */
function load(name: string) {
  return import(pathToFileURL(resolve('examples/plagiarism', name)).href);
}

interface Java {
  readonly kinds: readonly string[];
  tokenize(text: string): Tokens;
  lineStartsOf(text: string): Uint32Array;
  placeOf(lineStarts: Uint32Array, offset: number): { line: number; column: number };
}
export const { kinds, tokenize, lineStartsOf, placeOf }: Java = await load('java.js');

interface Winnow {
  readonly guaranteedTokens: number;
  fingerprint(codes: Uint8Array): Uint32Array;
  hashGrams(codes: Uint8Array, length: number): Uint32Array;
  countShared(a: Uint32Array, b: Uint32Array): number;
}
export const { guaranteedTokens, fingerprint, hashGrams, countShared }: Winnow =
  await load('winnow.js');

interface Tiling {
  tile(a: Uint8Array, b: Uint8Array, leastTokens: number): Tile[];
}
export const { tile }: Tiling = await load('tiling.js');

interface Comparing {
  compare(a: Program, b: Program): Comparison | null;
}
export const { compare }: Comparing = await load('compare.js');

interface Documents {
  makeDocument(text: string): Document;
}
export const { makeDocument }: Documents = await load('document.js');

interface Checking {
  check(texts: readonly string[]): Promise<{
    documents: Document[];
    found: (Comparison | null)[];
  }>;
}
export const sequential: Checking = await load('sequential.js');

interface Reading {
  readJavaFiles(folder: string): Promise<SourceFile[]>;
}
export const { readJavaFiles }: Reading = await load('files.js');

interface Planting {
  readonly changes: readonly string[];
  plant(text: string, options: { seed: number; done?: readonly string[] }): string;
}
export const { changes, plant }: Planting = await load('plant.js');
