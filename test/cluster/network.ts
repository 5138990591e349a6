// Machines of a network that exists during its test: Linux network namespaces on one bridge, in a user
// namespace of their own, so that it needs no privilege and does not touch the machine's own network. A
// machine that is cut off gets no packets any more, silently: nothing is closed or refused.
//
// A namespace exists as long as a process in it: `cat`, which ends with the pipe to this process. So
// nothing is left behind, however the test ends. Not here: the programs on the machines (member.ts).

import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { waitFor } from '../support/index.js';
import { natsProgram, skip as noServer } from './server.js';

const newUser = ['--user', '--map-root-user', '--net'];

function whyNone(): string | false {
  if (noServer !== false) return noServer;
  const script = 'ip link add sw type bridge && unshare --net true && nsenter --version';
  const { status } = spawnSync('unshare', [...newUser, 'sh', '-c', script], { stdio: 'ignore' });
  return (
    status !== 0 && 'needs network namespaces: ip, unshare, nsenter, and the right to make them'
  );
}

/** Reason why there is no network here; `false` if there is. */
export const skip = whyNone();

/** Reason why no machine can lose packets; `false` if it can. */
export function cannotLose(): string | false {
  const script = 'iptables -A INPUT -m statistic --mode random --probability 0.2 -j DROP';
  const { status } = spawnSync('unshare', [...newUser, 'sh', '-c', script], { stdio: 'ignore' });
  return status !== 0 && 'needs iptables with its match `statistic`';
}

/** Returns the command that runs in the namespaces of `pid`. */
function inside(pid: number, command: readonly string[]): [string, string[]] {
  return ['nsenter', ['-t', String(pid), '-U', '-n', '--preserve-credentials', '--', ...command]];
}

function must(pid: number, line: string): void {
  const { status, stderr } = spawnSync(...inside(pid, line.split(' ')), { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${line}: ${stderr}`);
}

/** Starts a process that keeps namespaces; returns its number once it is in them. */
async function keep(t: TestContext, command: string, args: readonly string[]): Promise<number> {
  const keeper = spawn(command, [...args, 'sh', '-c', 'echo in; exec cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(async () => {
    keeper.stdin.end();
    if (keeper.exitCode === null) await once(keeper, 'exit');
  });
  await once(keeper.stdout, 'data');
  return Number(keeper.pid);
}

export class Machine {
  readonly address: string;
  readonly #t: TestContext;
  readonly #pid: number;
  readonly #network: number;
  readonly #port: string;
  #loses = false;

  constructor(t: TestContext, pid: number, network: number, number: number) {
    this.#t = t;
    this.#pid = pid;
    this.#network = network;
    this.#port = `port${number}`;
    this.address = `10.0.0.${number}`;
    must(network, `ip link add ${this.#port} type veth peer name eth0 netns ${pid}`);
    must(network, `ip link set ${this.#port} up`);
    must(pid, 'ip link set lo up');
    must(pid, `ip addr add ${this.address}/24 dev eth0`);
    must(pid, 'ip link set eth0 up');
    this.heal();
  }

  /** Drops packets to it and from it from now on, silently. */
  cut(): void {
    must(this.#network, `ip link set ${this.#port} nomaster`);
  }

  heal(): void {
    must(this.#network, `ip link set ${this.#port} master sw`);
    if (this.#loses) must(this.#pid, 'iptables -F');
    this.#loses = false;
  }

  /** Drops this share of the packets to it and from it, at random, until `heal`. */
  lose(share: number): void {
    for (const chain of ['INPUT', 'OUTPUT']) {
      const random = `-m statistic --mode random --probability ${share}`;
      must(this.#pid, `iptables -A ${chain} ${random} -j DROP`);
    }
    this.#loses = true;
  }

  /** Starts a process there, which is killed after the test. */
  start(command: readonly string[], options: SpawnOptions): ChildProcess {
    const child = spawn(...inside(this.#pid, command), options);
    this.#t.after(async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    });
    return child;
  }

  /** Starts a NATS server there, with these lines in its configuration; returns its URL. */
  async startServer(configuration: readonly string[] = []): Promise<string> {
    const folder = mkdtempSync(join(tmpdir(), 'manycore-nats-'));
    this.#t.after(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'nats.conf');
    writeFileSync(file, ['port: 4222', ...configuration, ''].join('\n'));
    const server = this.start([natsProgram, '-c', file], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    server.stderr?.on('data', (bytes) => {
      said += bytes;
    });
    await waitFor(() => said.includes('Server is ready'));
    return `nats://${this.address}:4222`;
  }
}

/** Returns connected machines, which exist until the end of the test. */
export async function openNetwork(t: TestContext, count: number): Promise<Machine[]> {
  const network = await keep(t, 'unshare', newUser);
  must(network, 'ip link add sw type bridge forward_delay 0');
  must(network, 'ip link set sw up');
  const machines: Machine[] = [];
  for (let number = 1; number <= count; number += 1) {
    const [command, args] = inside(network, ['unshare', '--net']);
    machines.push(new Machine(t, await keep(t, command, args), network, number));
  }
  return machines;
}
