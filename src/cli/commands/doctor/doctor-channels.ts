// Tests which parts of manycore work here: the native binary, the inspector, and each kind of channel, by a
// worker that answers over it.

import inspector from 'node:inspector';
import { basename, dirname } from 'node:path';
import { closureReaderProblem } from '../../../context/index.js';
import { messageOf } from '../../../lib/index.js';
import { nativeBinding, nativePath, nativeProblem } from '../../../native.js';
import { Pool, type PoolOptions } from '../../../pool/index.js';
import type { Finding } from './doctor-report.js';

/** Findings of all parts; takes as long as the start of four workers. */
export async function channelFindings(): Promise<Finding[]> {
  const findings = [...native(), inspectorFinding(), ...readerFinding()];
  findings.push(await channel('shm', 'process'), await channel('socket', 'process'));
  findings.push(await channel('shm', 'thread'), await channel('memory', 'thread'));
  return findings;
}

function native(): Finding[] {
  const binding = nativeBinding();
  if (binding === undefined) {
    return [
      {
        what: 'native binary',
        state: 'missing',
        detail: nativeProblem()?.message ?? 'not loaded', // it ends with the remedy
        cost: 'calls work over sockets, where a short one takes much longer',
      },
    ];
  }
  const features = Object.entries(binding.probeKernel()).map(
    ([what, problem]): Finding =>
      problem === ''
        ? { what, state: 'ok', detail: 'works' }
        : {
            what,
            state: 'missing',
            detail: problem,
            cost: 'calls work over sockets, where a short one takes much longer',
            remedy: 'allow this system call (seccomp profile)',
          },
  );
  const found: Finding = { what: 'native binary', state: 'ok', detail: describePath() };
  return [found, ...features, largeResults(binding.uncountedProblem())];
}

const ofLine = 'use a line of Node.js that this version of manycore supports';

function largeResults(problem: string): Finding {
  const what = 'large results';
  if (problem === '') return { what, state: 'ok', detail: 'V8 collects no whole heap for them' };
  const cost = 'V8 collects the whole heap after a few results or arguments of some MB';
  return { what, state: 'advice', detail: problem, cost, remedy: ofLine };
}

/** The folder names the platform: `linux-x64-gnu`. */
function describePath(): string {
  const path = nativePath() ?? '';
  return `loaded: ${basename(dirname(path))}/${basename(path)}`;
}

function inspectorFinding(): Finding {
  const what = 'inspector';
  try {
    const session = new inspector.Session();
    session.connect();
    session.disconnect();
    return { what, state: 'ok', detail: 'captured variables can be read' };
  } catch (error) {
    const cost = 'functions that capture variables cannot travel';
    const remedy = 'allow it (--allow-inspector from Node 24 on), or pass values as arguments';
    return { what, state: 'missing', detail: messageOf(error), cost, remedy };
  }
}

/** Nothing where there is no binary, which is a finding of its own. */
function readerFinding(): Finding[] {
  if (nativeBinding() === undefined) return [];
  const what = 'native capture';
  const problem = closureReaderProblem();
  if (problem === undefined) {
    return [{ what, state: 'ok', detail: 'captured variables are read without the inspector' }];
  }
  const cost = 'a closure that is written in place costs a fraction of a millisecond for each call';
  return [{ what, state: 'advice', detail: problem, cost, remedy: ofLine }];
}

async function channel(
  kind: NonNullable<PoolOptions['channel']>,
  worker: 'process' | 'thread',
): Promise<Finding> {
  const what = `${worker} workers over ${kind}`;
  try {
    await using pool = new Pool({ worker, channel: kind, size: 1, startTimeoutMs: 10_000 });
    const answer = await pool.run((a: number, b: number) => a + b, 40, 2);
    if (answer !== 42) throw new Error(`a worker answered ${String(answer)} for 42`);
    return { what, state: 'ok', detail: 'a worker answered' };
  } catch (error) {
    const remedy = 'channel "auto" uses the next one that works';
    return { what, state: 'missing', detail: messageOf(error), remedy };
  }
}
