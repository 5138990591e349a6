// `manycore doctor`: diagnoses this machine and the servers of this user; `manycore doctor PID`: one program.
// Findings are made in the files beside this one. Exit code 1: something is missing, or is a problem now.

import { CodedError, hasCode } from '../../../errors.js';
import { messageOf } from '../../../lib/index.js';
import { remoteServers, type ServerStatus } from '../../../serve/index.js';
import { grantedCores } from '../../../worker/index.js';
import { channelFindings } from './doctor-channels.js';
import { machineFindings } from './doctor-machine.js';
import { programFindings } from './doctor-program.js';
import { type Chapter, isWell, report } from './doctor-report.js';
import { sampleProcess } from './doctor-samples.js';
import { loopsByProcess, serverFindings } from './doctor-server.js';

export interface DoctorOptions {
  readonly json?: boolean;
}

/**
 * Prints the findings; resolves with the exit code: 0 all is well, 1 something is not. Rejects with
 * `PROCESS_GONE`, `PROCESS_REFUSED`, `PROCESS_NOT_NODE` or `PROCESS_OTHER_PID_NAMESPACE` when `pid` is no
 * program of Node that can be inspected.
 */
export async function doctor(pid: number | undefined, { json }: DoctorOptions): Promise<number> {
  const chapters = pid === undefined ? await everything() : await program(pid);
  const isGood = isWell(chapters);
  if (json === true) console.log(asJson(chapters, isGood));
  else console.log(report(chapters));
  return isGood ? 0 : 1;
}

async function everything(): Promise<Chapter[]> {
  const findings = [...machineFindings(), ...(await channelFindings())];
  const statuses = await servers();
  if (statuses instanceof CodedError) {
    const detail = `no server can be found: ${statuses.message}`;
    findings.push({ what: 'servers', state: 'missing', detail });
    return [{ title: 'This machine', findings }];
  }
  const chapters = await Promise.all(statuses.map((status) => server(status, statuses)));
  return [{ title: 'This machine', findings }, ...chapters.flat()];
}

/** Running servers, or the error that prevents finding them. */
async function servers(): Promise<ServerStatus[] | CodedError> {
  try {
    return (await remoteServers()).map(({ status }) => status);
  } catch (error) {
    if (hasCode(error, 'RUNTIME_FOLDER_REFUSED') && error instanceof CodedError) return error;
    throw error;
  }
}

/** Diagnoses a server, one of its processes, or any other program. */
async function program(pid: number): Promise<Chapter[]> {
  const found = await servers();
  const statuses = found instanceof CodedError ? [] : found;
  const own = statuses.filter((status) => status.pid === pid);
  if (own.length > 0) return (await Promise.all(own.map((each) => server(each, statuses)))).flat();
  const loops = statuses.map((status) => loopsByProcess(status).get(pid)).find(Boolean) ?? 0;
  const samples = await sampleProcess(pid);
  const findings = programFindings(samples, grantedCores().count, loops);
  return [{ title: `${samples.command} (process ${pid})`, pid, findings }];
}

async function server(status: ServerStatus, all: readonly ServerStatus[]): Promise<Chapter[]> {
  const { app, pid } = status;
  const cores = grantedCores().count;
  const title = `${app}, served by process ${pid}`;
  const processes = [...loopsByProcess(status)].map(async ([each, loops]): Promise<Chapter[]> => {
    try {
      const findings = programFindings(await sampleProcess(each), cores, loops);
      return [{ title: `${app}, process ${each}`, pid: each, findings }];
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      if (error.code === 'PROCESS_GONE') return []; // replaced meanwhile
      const detail = messageOf(error);
      const findings = [{ what: 'process', state: 'info', detail } as const];
      return [{ title: `${app}, process ${each}`, pid: each, findings }];
    }
  });
  const own: Chapter = { title, pid, findings: serverFindings(status, cores, all) };
  return [own, ...(await Promise.all(processes)).flat()];
}

/** The report as JSON; its `findings` are those of the machine. */
function asJson(chapters: readonly Chapter[], isGood: boolean): string {
  const findings = chapters.filter(({ pid }) => pid === undefined).flatMap((each) => each.findings);
  const programs = chapters.filter(({ pid }) => pid !== undefined);
  return JSON.stringify({ isWell: isGood, findings, programs }, undefined, 2);
}
