// `manycore top` as people see it: in a terminal, in one that is small, dumb, without colours, and in none.

import assert from 'node:assert/strict';
import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../faults/child.js';
import { ownRuntime } from '../observe/runtime.js';
import { childrenOf, killOne, waitFor } from '../support/index.js';
import { noPseudoTerminal, PseudoTerminal, type Size, shellWord } from './pseudo-terminal.js';
import { command } from './serving.js';

const skip = noPseudoTerminal;
const busy = fileURLToPath(new URL('../observe/apps/busy.js', import.meta.url));
const crashing = fileURLToPath(new URL('./apps/crash.js', import.meta.url));
const usual = { columns: 80, rows: 24 };
const topLine = `exec '${process.execPath}' '${command}' top`;

function startBusy(t: TestContext, file = busy): ChildProcess {
  const child = fork(file);
  t.after(() => child.kill('SIGKILL'));
  return child;
}

function top(t: TestContext, size: Size = usual, env: NodeJS.ProcessEnv = {}): PseudoTerminal {
  return new PseudoTerminal(t, topLine, size, env);
}

test('programs are shown in 80 columns, one is opened, and closed again', { skip }, async (t) => {
  ownRuntime(t);
  const { pid } = startBusy(t);
  const terminal = top(t);
  await terminal.sees(new RegExp(`> +${pid} +busy\\.js .*\\d+%`));
  assert.match(terminal.lines[0] ?? '', /^manycore top {2}1 program$/);
  assert.match(
    terminal.lines[1] ?? '',
    /^ +PID +PROGRAM +(LOOPS +)?BUSY +LAG +CPU +MEM +WORKERS +WAIT +LOST +TASKS\/S/,
  );
  assert.ok(terminal.lines.every((line) => line.length <= 80));
  terminal.press('\r');
  await terminal.sees(/^Event loops[^]*^Pool 1 .*over (shm|socket)[^]*^Workers of pool 1/m);
  await terminal.sees(/^ +1 +process +\d+ +ready/m);
  terminal.press('\u001b');
  await terminal.sees(/PROGRAM/);
  terminal.press('q');
  assert.equal(await terminal.ended, 0);
});

test('keys sort, pause and help, and the screen shows each', { skip }, async (t) => {
  ownRuntime(t);
  startBusy(t);
  const terminal = top(t);
  await terminal.sees(/busy\.js/);
  await terminal.sees(/s sort: cpu/);
  terminal.press('s');
  await terminal.sees(/s sort: busy/);
  terminal.press('p');
  await terminal.sees(/PAUSED/);
  terminal.press('?');
  await terminal.sees(/how late timers were/);
  terminal.press('?');
  await terminal.sees(/busy\.js/);
  terminal.press('p');
  await waitFor(() => !terminal.text.includes('PAUSED'));
  terminal.press('q');
  await terminal.ended;
});

test('a program that ends while it is opened is shown as ended', { skip }, async (t) => {
  ownRuntime(t);
  const child = startBusy(t);
  const terminal = top(t);
  await terminal.sees(/busy\.js/);
  terminal.press('\r');
  await terminal.sees(/Event loops/);
  child.kill('SIGKILL');
  await terminal.sees(new RegExp(`program ${child.pid} has ended`));
  terminal.press('\u001b');
  await terminal.sees(/no program that uses manycore runs/);
  terminal.press('q');
  await terminal.ended;
});

test('a terminal that is too small shows one line about it, until it is larger', {
  skip,
}, async (t) => {
  ownRuntime(t);
  startBusy(t);
  const terminal = top(t, { columns: 40, rows: 10 });
  await terminal.sees(/^too small: 40x10, needs 60x10\n+$/);
  terminal.resize(usual);
  await terminal.sees(/PROGRAM[^]*busy\.js[^]*q quit/);
  terminal.resize({ columns: 40, rows: 10 });
  await terminal.sees(/^too small/);
  terminal.resize({ columns: 132, rows: 40 });
  await terminal.sees(/PROGRAM[^]*busy\.js[^]*q quit/);
  terminal.press('q');
  assert.equal(await terminal.ended, 0);
});

test('NO_COLOR: no colour is seen, and all the rest is', { skip }, async (t) => {
  ownRuntime(t);
  startBusy(t);
  const colored = top(t);
  await colored.sees(/busy\.js/);
  assert.equal(colored.isStyled, true);
  const plain = top(t, usual, { NO_COLOR: '1' });
  await plain.sees(/> +\d+ +busy\.js/);
  assert.equal(plain.isStyled, false);
});

test('a dumb terminal gets lines and no escape sequence', { skip }, async (t) => {
  ownRuntime(t);
  startBusy(t);
  const terminal = top(t, usual, { TERM: 'dumb' });
  await waitFor(() => /PROGRAM[^]*busy\.js/.test(terminal.output));
  terminal.press('q');
  assert.equal(await terminal.ended, 0);
  assert.ok(!terminal.output.includes('\u001b'), JSON.stringify(terminal.output));
});

test('wide characters in a name leave the columns where they are', { skip }, async (t) => {
  ownRuntime(t);
  // The copy lies beside the original, which imports the library by a path.
  const wide = join(busy, '..', '計算サーバー計算サーバー計算サーバー.js');
  copyFileSync(busy, wide);
  t.after(() => rmSync(wide));
  startBusy(t);
  startBusy(t, wide);
  const terminal = top(t, { columns: 72, rows: 24 });
  await terminal.sees(/busy\.js[^]*計算|計算[^]*busy\.js/);
  const columnOf = (line: string | undefined): number => cells(line ?? '').lastIndexOf('%');
  const [first, second] = await waitFor(() => {
    const lines = terminal.lines.filter((line) => /(計算.*~|busy\.js).*%.*%/.test(line));
    return lines.length === 2 && lines;
  });
  assert.equal(columnOf(first), columnOf(second));
  terminal.press('q');
  await terminal.ended;
});

/** A character for each cell: wide ones take two. */
function cells(line: string): string {
  return line.replace(/[\u3000-\u9fff]/g, 'ww');
}

const restored = (run: string): string =>
  `stty -g; ${run}; echo "ended with $?"; stty -g; echo done`;

async function assertRestored(terminal: PseudoTerminal): Promise<void> {
  await terminal.sees(/^done$/m);
  assert.equal(terminal.isOtherScreen, false);
  // The output holds both: a trace with long paths scrolls the first off the screen.
  const [before, after] = terminal.output.match(/^[0-9a-f]+(:[0-9a-f]+)+(?=\r?$)/gm) ?? [];
  assert.ok(before !== undefined);
  assert.equal(before, after);
  const [shown, hidden] = ['\u001b[?25h', '\u001b[?25l'];
  assert.ok(terminal.output.lastIndexOf(shown) > terminal.output.lastIndexOf(hidden));
  await terminal.ended;
}

test('q gives the terminal back as it was', { skip }, async (t) => {
  ownRuntime(t);
  const terminal = new PseudoTerminal(t, restored(topLine.replace('exec ', '')), usual);
  await terminal.sees(/no program/);
  assert.equal(terminal.isOtherScreen, true);
  terminal.press('q');
  await assertRestored(terminal);
  assert.match(terminal.text, /ended with 0/);
});

for (const [signal, status] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const) {
  test(`${signal} gives the terminal back as it was`, { skip }, async (t) => {
    ownRuntime(t);
    const run = `sh -c '${topLine.replaceAll("'", '"').replace('exec', () => 'echo pid $$; exec')}'`;
    const terminal = new PseudoTerminal(t, restored(run), usual);
    await terminal.sees(/no program/);
    process.kill(Number(/pid (\d+)/.exec(terminal.output)?.[1]), signal);
    await assertRestored(terminal);
    assert.match(terminal.text, new RegExp(`ended with ${status}`));
  });
}

test('a crash gives the terminal back as it was, and is seen', { skip }, async (t) => {
  const terminal = new PseudoTerminal(t, restored(`'${process.execPath}' '${crashing}'`), usual);
  await terminal.sees(/about to crash/);
  terminal.press('x');
  await assertRestored(terminal);
  assert.match(terminal.output, /Error: a crash/);
  assert.match(terminal.output, /ended with 1/);
});

/** Runs a line in a shell with jobs, under a parent in the same job, such as npx. */
const asJob = (run: string): string =>
  `exec bash -c 'set -m; stty -g; sh -c "${run}; exit \\$?"; echo "stopped with $?"; stty -g; read -r go; fg; echo "ended with $?"; echo done'`;

const noBash =
  noPseudoTerminal || (spawnSync('bash', ['--version']).error !== undefined && 'there is no bash');

for (const way of ['Ctrl-Z', 'SIGTSTP']) {
  test(`${way} stops the whole job with the terminal as it was, and going on takes it again`, {
    skip: noBash,
  }, async (t) => {
    ownRuntime(t);
    const run = `${shellWord(process.execPath)} ${shellWord(command)} top`;
    const terminal = new PseudoTerminal(t, asJob(run), usual);
    await terminal.sees(/no program/);
    if (way === 'Ctrl-Z') terminal.press('\u001a');
    else killOne(topUnder(terminal.pid ?? 0), 'SIGTSTP');
    await terminal.sees(/stopped with 148/);
    assert.equal(terminal.isOtherScreen, false);
    const settings = await waitFor(() => {
      const found = terminal.lines.filter((line) => /^[0-9a-f]+:[0-9a-f:]+$/.test(line));
      return found.length === 2 && found;
    });
    assert.equal(settings[0], settings[1]);
    terminal.press('\r');
    await waitFor(() => terminal.isOtherScreen);
    await terminal.sees(/no program/);
    terminal.press('q');
    await terminal.sees(/ended with 0[^]*^done$/m);
  });
}

/** The pid of the last of a chain of processes. */
function topUnder(pid: number): number {
  const [child] = childrenOf(pid);
  return child === undefined ? pid : topUnder(child.pid);
}

test('Ctrl-Z where no shell could go on leaves it running', { skip }, async (t) => {
  ownRuntime(t);
  const terminal = top(t);
  await terminal.sees(/no program/);
  const before = terminal.output.split('\u001b[?1049h').length;
  terminal.press('\u001a');
  await waitFor(() => terminal.output.split('\u001b[?1049h').length > before);
  await terminal.sees(/no program/);
  terminal.press('q');
  assert.equal(await terminal.ended, 0);
});

test('an error is printed once the terminal is given back', { skip }, async (t) => {
  const runtime = ownRuntime(t);
  const terminal = new PseudoTerminal(t, restored(topLine.replace('exec ', '')), usual);
  await terminal.sees(/no program/);
  chmodSync(runtime, 0o755);
  await assertRestored(terminal);
  assert.match(terminal.text.replace(/\n/g, ''), /\(RUNTIME_FOLDER_REFUSED\)/); // wrapped at 80
  assert.match(terminal.text, /ended with 2/);
});

test('without a terminal it names the alternatives', async (t) => {
  ownRuntime(t);
  const ended = await runCommand(t, [process.execPath, command, 'top']);
  assert.deepEqual(ended, {
    status: 2,
    stdout: '',
    stderr:
      'manycore: manycore top fills a terminal, and this is none: --once prints a table, ' +
      '--json prints JSON (TOP_NO_TERMINAL)\n',
  });
});

test('--once prints no name that steers the terminal', async (t) => {
  ownRuntime(t);
  const evil = join(busy, '..', 'evil\u001b[2J\u061c\u2028.js');
  copyFileSync(busy, evil);
  t.after(() => rmSync(evil));
  const { pid } = startBusy(t, evil);
  for (const args of [['--once'], ['--once', String(pid)]]) {
    const { stdout } = await waitFor(async () => {
      const ended = await runCommand(t, [process.execPath, command, 'top', ...args]);
      return ended.status === 0 && ended.stdout.includes('evil') && ended;
    });
    assert.match(stdout, /evil\?\[2J\?\?\.js/);
    assert.ok(!stdout.includes('\u001b'));
  }
});

test('--once prints one table, --json the same for programs', async (t) => {
  ownRuntime(t);
  const run = (...args: string[]) => runCommand(t, [process.execPath, command, 'top', ...args], {});
  assert.equal((await run('--once')).stdout, 'no program that uses manycore runs\n');
  assert.equal((await run('--json')).stdout, '[]\n');
  const { pid } = startBusy(t);
  const { stdout } = await waitFor(async () => {
    const ended = await run('--once');
    return /busy\.js/.test(ended.stdout) && ended;
  });
  const [head, line, ...rest] = stdout.trimEnd().split('\n');
  assert.match(head ?? '', /^ +PID +PROGRAM .* REQ\/S$/);
  assert.match(line ?? '', new RegExp(`^ +${pid} +busy\\.js +1 +\\d+% `));
  assert.deepEqual(rest, []);
  const [program] = JSON.parse((await run('--json')).stdout);
  assert.equal(program.pid, pid);
  assert.ok(program.summary.tasksPerSecond > 0);
  assert.ok(program.pools[0].workers[0].pid > 0);
  assert.match((await run('--once', String(pid))).stdout, /^\d+ busy\.js\n\nEvent loops/);
  const unknown = await run('--once', '1');
  assert.equal(unknown.status, 2);
  assert.match(unknown.stderr, /has the pid 1: .* \(OBSERVE_PROGRAM_NOT_FOUND\)$/m);
});
