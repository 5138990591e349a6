// The memory of a peer that making values from a payload needs: values of earlier payloads, code, modules.
// Not here: keeping it (importer.ts), using it (decode.ts).

import type { CodedError } from '../../errors.js';
import type { Identity } from '../protocol.js';
import type { AnyFunction } from '../types.js';
import type { Plan } from './factory.js';
import type { Instance } from './recreate.js';

/** Everything that outlives a payload. */
export interface Memory {
  /** The value of this process that a peer sends back; `undefined`: it is not ours, or gone. */
  original(identity: Identity): unknown;
  /** The value that an earlier payload made for `identity`. */
  cached(identity: Identity): unknown;
  /** `instance`: the variables of a function or class. */
  remember(identity: Identity, value: unknown, instance?: Instance): void;
  /** Makes a function that cannot stay anew the next time. */
  drop(identity: Identity): void;
  /** `values`: of the slots; `plan`: how they arrive, where not all are there. */
  instantiate(codeId: number, values: readonly unknown[], plan?: Plan): Instance;
  finish(codeId: number, fn: AnyFunction, made: Made): void;
  /** Notes that `fn`, which has no code of its own, was made here. */
  own(fn: AnyFunction): void;
  /** The variables of a function or class in this memory, to refresh them. */
  instanceOf(fn: AnyFunction): Instance | undefined;
  /** Index of the slot that a class extends; -1: none. */
  heritageOf(codeId: number): number;
  /** True: `fn` was made from this code, or from the same. */
  hasCode(fn: AnyFunction, codeId: number): boolean;
  /** The version of a class that is here already, as its owner counts. */
  versionOf(fn: AnyFunction): number;
  setVersion(fn: AnyFunction, version: number): void;
  closure(id: number): AnyFunction;
  /** `variable`: see `ModuleReference`; '': the export itself. */
  imported(id: number, name: string, variable: string): unknown;
  /** The reason why an import is unusable; `path`: its export, with the variable. */
  unusableImport(id: number, path: string, value: unknown): CodedError;
  importedCell(id: number, name: string): object;
  requireFor(url: string): unknown;
  moduleFor(url: string): unknown;
  /** The values that were posted beside the payload. */
  parcel(id: number): readonly unknown[];
}

export interface Made {
  readonly instance: Instance;
  readonly self: readonly unknown[];
  readonly identity: Identity;
}
