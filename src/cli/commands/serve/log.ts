// Output of served programs with labels, for files, the terminal and `manycore logs`.

import { CodedError } from '../../../errors.js';
import { messageOf } from '../../../lib/index.js';
import type { AccessFormat, OutputLine, ServeOptions } from '../../../serve/index.js';
import { LogFile } from './log-file.js';

export type LogFormat = 'text' | 'json';

/** The option `log` of a configuration. */
export interface LogOptions {
  /** Default: the output of the command, with labels. */
  readonly file?: string | undefined;
  /** Default: text. */
  readonly format?: LogFormat | undefined;
  /** Size at which the file is rotated, in MiB. Default: never. */
  readonly maxMb?: number | undefined;
  /** Number of old files. Default: 5. */
  readonly keep?: number | undefined;
}

/** The option `accessLog` of a configuration. */
export interface AccessLogOptions extends Omit<LogOptions, 'file' | 'format'> {
  readonly file: string;
  /** Default: common. */
  readonly format?: AccessFormat | undefined;
}

/** Formats a line, with its end: time, name, process and loop, stream, text. */
export function formatLine(line: OutputLine, format: LogFormat): string {
  const { timeMs, name, process, loop, stream, text } = line;
  const time = new Date(timeMs).toISOString();
  if (format === 'json') {
    return `${JSON.stringify({ time, name, process, loop, stream, text })}\n`;
  }
  const which = stream === 'stdout' ? 'out' : 'err';
  return `${time} ${name} ${process}.${loop ?? '-'} ${which} ${text}\n`;
}

const defaultKeep = 5;

/** The files of a command, each opened once. */
export class Logs {
  readonly #files = new Map<string, LogFile>();

  /** Returns the listener for the output of an app. Throws `OPTION_INVALID` for a file that cannot be written. */
  listener({ file, format = 'text', maxMb, keep }: LogOptions): (line: OutputLine) => void {
    if (file === undefined) {
      return (line) => void process[line.stream].write(formatLine(line, format));
    }
    const log = this.#open('log', file, { maxMb, keep });
    return (line) => log.write(formatLine(line, format));
  }

  /** The option of `serve` for an access log. Throws `OPTION_INVALID` for a file that cannot be written. */
  access({ file, format, ...rotation }: AccessLogOptions): NonNullable<ServeOptions['accessLog']> {
    const log = this.#open('accessLog', file, rotation);
    return { format, onLines: (lines) => log.write(lines) };
  }

  #open(option: string, file: string, rotation: Rotation): LogFile {
    const log = this.#files.get(file) ?? open(option, file, rotation);
    this.#files.set(file, log);
    return log;
  }

  reopen(): void {
    for (const file of this.#files.values()) file.reopen();
  }

  /** For a server that has not started. */
  close(): void {
    for (const file of this.#files.values()) file.close();
    this.#files.clear();
  }
}

type Rotation = Pick<LogOptions, 'maxMb' | 'keep'>;

function open(option: string, path: string, { maxMb, keep }: Rotation): LogFile {
  try {
    return new LogFile(path, {
      maxBytes: maxMb === undefined ? Infinity : maxMb * 2 ** 20,
      keep: keep ?? defaultKeep,
      onProblem: (message) => console.error(`manycore: ${message}`),
    });
  } catch (cause) {
    const message = `${option}.file cannot be written: ${messageOf(cause)}; name one that can`;
    throw new CodedError('OPTION_INVALID', message, { cause });
  }
}
