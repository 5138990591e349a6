// `manycore profile PID`: CPU profiles of the threads of a running process, a file each, or of one worker.

import { accessSync, constants, existsSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { CodedError } from '../../../errors.js';
import { messageOf } from '../../../lib/index.js';
import { profileProcess } from '../../../observe/index.js';

export interface ProfileFlags {
  readonly seconds?: number;
  readonly thread?: number;
  readonly worker?: number;
  readonly out?: string;
}

const defaultSeconds = 5;

/** Writes the files and prints their names. Rejects as `profileProcess`, and for files that cannot be written. */
export async function profile(
  pid: number,
  { seconds = defaultSeconds, thread, worker, out = defaultFile(pid, worker) }: ProfileFlags,
): Promise<void> {
  const file = resolve(out);
  checkWritable(file);
  const stillRuns = `profiling process ${pid} for ${seconds} s: Ctrl-C gives up`;
  if (process.stderr.isTTY) console.error(stillRuns);
  const profiles = await profileProcess(pid, { seconds, thread, worker });
  for (const each of profiles) {
    const path = profiles.length === 1 ? file : withThread(file, each.thread);
    try {
      writeFileSync(path, JSON.stringify(each.profile));
    } catch (cause) {
      throw unwritable(path, cause);
    }
    console.log(path);
  }
}

function defaultFile(pid: number, worker: number | undefined): string {
  return `manycore-${pid}${worker === undefined ? '' : `.worker-${worker}`}.cpuprofile`;
}

/** `a.3.cpuprofile` for `a.cpuprofile`. DevTools open only files with that ending. */
function withThread(file: string, thread: number): string {
  return file.replace(/(\.cpuprofile)?$/, `.${thread}.cpuprofile`);
}

/** Checks before the profile, which takes seconds. */
function checkWritable(file: string): void {
  try {
    accessSync(existsSync(file) ? file : dirname(file), constants.W_OK);
  } catch (cause) {
    throw unwritable(file, cause);
  }
}

function unwritable(file: string, cause: unknown): CodedError {
  const message = `${file} cannot be written: ${messageOf(cause)}; name another with --out`;
  return new CodedError('OPTION_INVALID', message, { cause });
}
