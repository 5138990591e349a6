// Output of a process of a server, as its supervisor reads it.

import type { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';
import { LineSplitter, maxLineLength, maxMarkLength, type OutputLine, readMark } from './lines.js';

interface Source {
  /** Name of the app. */
  readonly name: string;
  /** Number of the process. */
  readonly process: number;
  /** The loop of lines without a mark. */
  readonly onlyLoop: number | undefined;
}

/** Calls `onLine` with each line that the process prints. */
export function readOutput(
  { stdout, stderr }: ChildProcess,
  { name, process, onlyLoop }: Source,
  onLine: (line: OutputLine) => void,
): void {
  const read = (from: Readable | null, stream: OutputLine['stream']): void => {
    const splitter = new LineSplitter((line) => {
      const { loop = onlyLoop, text } = readMark(line);
      onLine({ timeMs: Date.now(), name, process, loop, stream, text });
    }, maxLineLength + maxMarkLength);
    from?.on('data', (bytes: Buffer) => splitter.write(bytes));
    from?.once('end', () => splitter.end());
    from?.on('error', () => {}); // the process has ended
  };
  read(stdout, 'stdout');
  read(stderr, 'stderr');
}
