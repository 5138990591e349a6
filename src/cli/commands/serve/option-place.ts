// Places of options of `manycore serve`, for errors: the file of the configuration, and the app in it.

import { CodedError } from '../../../errors.js';
import { fillServeOptions, type ServeOptions } from '../../../serve/index.js';

export interface OptionPlace {
  /** Path of the configuration; `undefined`: there is none. */
  readonly file: string | undefined;
  /** One of several apps, as `apps[1] (shop)`; `undefined` for the only one. */
  readonly app: string | undefined;
  /** Options of the command line, which override those of all apps. */
  readonly flags: ServeOptions;
  /** Options beside `apps`. */
  readonly shared: ServeOptions;
}

/** Throws `OPTION_INVALID` with the place of the option that is wrong. */
export function checkOptionsAt(
  { file, app, flags, shared }: OptionPlace,
  options: ServeOptions,
): void {
  const problem = problemOf(options);
  if (problem === undefined) return;
  const isProblemOf = (some: ServeOptions): boolean =>
    messageIn(problemOf(some)) === messageIn(problem);
  if (isProblemOf(flags)) throw problem;
  throw inPlace(file, isProblemOf(shared) ? problem : inPlace(app, problem));
}

function problemOf(options: ServeOptions): unknown {
  try {
    fillServeOptions(options);
    return undefined;
  } catch (error) {
    return error;
  }
}

function messageIn(error: unknown): unknown {
  return error instanceof CodedError ? error.message : error;
}

/** Puts a place before the message of an error that has a code, unless that begins with it. */
export function inPlace(place: string | undefined, error: unknown): unknown {
  if (place === undefined || !(error instanceof CodedError)) return error;
  if (error.message.startsWith(place)) return error;
  return new CodedError(error.code, `${place}: ${error.message}`, { cause: error.cause });
}
