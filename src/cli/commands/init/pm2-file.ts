// `manycore init pm2`: reads an ecosystem file of PM2, and prints a configuration of `manycore serve` for it.

import { existsSync, readFileSync } from 'node:fs';
import { dirname, extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CodedError } from '../../../errors.js';
import { messageOf } from '../../../lib/index.js';
import { type File, output } from './output.js';
import { fromPm2 } from './pm2.js';

export interface Pm2Flags {
  readonly env?: string;
  readonly only?: string;
  readonly write?: boolean;
}

const defaultFiles = ['js', 'cjs', 'mjs', 'json'].map((end) => `ecosystem.config.${end}`);

/**
 * Prints the configuration, or writes it beside the file; keys that are left out go to stderr, a line each. Rejects
 * with `CLI_FILE_NOT_FOUND`, `OPTION_INVALID`.
 */
export async function initPm2(given: string | undefined, flags: Pm2Flags): Promise<void> {
  const file = fileOf(given);
  const folder = dirname(file);
  const { config, notes } = await translated(file, flags);
  for (const note of notes) console.error(`manycore: ${note}`);
  if (config === undefined) {
    throw new CodedError('OPTION_INVALID', `${file} has no app for manycore serve: see above`);
  }
  const name = resolve(folder, 'manycore.config.json');
  const text = `${JSON.stringify(config, undefined, 2)}\n`;
  const next = [`cd ${folder}`, 'manycore serve'];
  output({ name, text, next } satisfies File, flags.write === true);
}

async function translated(file: string, { env, only }: Pm2Flags) {
  const content = await contentOf(file);
  try {
    return fromPm2(content, { folder: dirname(file), env, only });
  } catch (cause) {
    if (!(cause instanceof CodedError)) throw cause;
    throw new CodedError(cause.code, `${file}: ${cause.message}`, { cause });
  }
}

function fileOf(given: string | undefined): string {
  const names = given === undefined ? [...defaultFiles, 'ecosystem.json'] : [given];
  const file = names.map((name) => resolve(name)).find((path) => existsSync(path));
  if (file !== undefined) return file;
  const message =
    given === undefined
      ? 'there is no ecosystem.config.js here: give the file that pm2 start reads'
      : `there is no file ${resolve(given)}: give the file that pm2 start reads`;
  throw new CodedError('CLI_FILE_NOT_FOUND', message);
}

async function contentOf(file: string): Promise<unknown> {
  const end = extname(file);
  if (['.yml', '.yaml'].includes(end)) {
    const message = `${file} is YAML: convert it to JSON first, as by npx js-yaml`;
    throw new CodedError('OPTION_INVALID', message);
  }
  try {
    if (!/^\.[cm]?[jt]s$/.test(end)) return JSON.parse(readFileSync(file, 'utf8'));
    const module: { default?: unknown } = await import(pathToFileURL(file).href);
    return module.default ?? module;
  } catch (cause) {
    const wayOut = end === '.json' ? '; comments need a file ecosystem.config.cjs' : '';
    const message = `${file} cannot be read: ${messageOf(cause)}${wayOut}`;
    throw new CodedError('OPTION_INVALID', message, { cause });
  }
}
