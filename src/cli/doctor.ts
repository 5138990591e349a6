// `manycore doctor`: what this machine grants and allows, found out by trying: each channel is shown to
// work by a host that answers over it. Every line that is not well says what it costs and how to mend it.

import inspector from 'node:inspector';
import { release } from 'node:os';
import { grantedCores } from '../host/index.js';
import { nativeBinding, nativeProblem } from '../native.js';
import { Pool, type PoolOptions } from '../pool/index.js';

interface Finding {
  readonly what: string;
  readonly state: 'ok' | 'missing' | 'info';
  readonly detail: string;
  /** What to do; `undefined` when nothing is to be done. */
  readonly remedy?: string;
}

/** Prints what was found; resolves with the exit code: 0 all is well, 1 something is missing. */
export async function doctor(asJson: boolean, version: string): Promise<number> {
  const findings = [...versions(version), cores(), ...native(), inspectorFinding()];
  findings.push(await channel('shm', 'process'), await channel('socket', 'process'));
  findings.push(await channel('shm', 'thread'), await channel('memory', 'thread'));
  const isWell = findings.every((finding) => finding.state !== 'missing');
  if (asJson) console.log(JSON.stringify({ isWell, findings }, undefined, 2));
  else console.log(report(findings, isWell));
  return isWell ? 0 : 1;
}

function versions(version: string): Finding[] {
  const { platform, arch } = process;
  const detail = `manycore ${version}, Node ${process.versions.node} (V8 ${process.versions.v8}), ${platform}-${arch}, kernel ${release()}`;
  return [{ what: 'versions', state: 'info', detail }];
}

function cores(): Finding {
  const { count, reason } = grantedCores();
  return { what: 'cores', state: 'info', detail: `${count} granted: ${reason}` };
}

function native(): Finding[] {
  const binding = nativeBinding();
  if (binding === undefined) {
    return [
      {
        what: 'native binary',
        state: 'missing',
        detail: nativeProblem()?.message ?? 'not loaded',
        remedy:
          'calls work over sockets, which costs a short call much more; build it with npm run build:native',
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
            remedy: 'allow this system call (seccomp profile)',
          },
  );
  return [{ what: 'native binary', state: 'ok', detail: 'loaded' }, ...features];
}

function inspectorFinding(): Finding {
  const what = 'inspector';
  try {
    const session = new inspector.Session();
    session.connect();
    session.disconnect();
    return { what, state: 'ok', detail: 'captured variables can be read' };
  } catch (error) {
    const remedy = 'allow it (--allow-inspector from Node 24 on), or pass values as arguments';
    return { what, state: 'missing', detail: messageOf(error), remedy };
  }
}

async function channel(
  kind: NonNullable<PoolOptions['channel']>,
  host: 'process' | 'thread',
): Promise<Finding> {
  const what = `${host} hosts over ${kind}`;
  try {
    await using pool = new Pool({ host, channel: kind, size: 1, startTimeoutMs: 10_000 });
    const answer = await pool.run((a: number, b: number) => a + b, 40, 2);
    if (answer !== 42) throw new Error(`a host answered ${String(answer)} for 42`);
    return { what, state: 'ok', detail: 'a host answered' };
  } catch (error) {
    const remedy = 'channel "auto" uses the next one that works';
    return { what, state: 'missing', detail: messageOf(error), remedy };
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function report(findings: readonly Finding[], isWell: boolean): string {
  const width = Math.max(...findings.map((finding) => finding.what.length));
  const marks = { ok: 'ok     ', missing: 'MISSING', info: '       ' };
  const lines = findings.flatMap(({ what, state, detail, remedy }) => {
    const line = `${marks[state]} ${what.padEnd(width)}  ${detail}`;
    return remedy === undefined ? [line] : [line, `${' '.repeat(width + 10)}→ ${remedy}`];
  });
  const verdict = isWell ? 'Everything works here.' : 'It works here, with what is MISSING above.';
  return [...lines, '', verdict].join('\n');
}
