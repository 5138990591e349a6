// npm run bench: measures every case, or the named ones, prints a table each and stores the results.
//
//   npm run bench -- [NAME...] [--quick] [--rounds N] [--only TEXT] [--before FOLDER] [--node PATH] [--list]
//
// Each measurement is a fresh process and contenders take turns (report/plan.ts). --quick, --rounds and
// --only give rough numbers, not fit for a document: they go to bench/results/quick. Results of lines of Node
// other than the main one go to a folder of the line (lib/machine.js). `paper` is a name for
// all cases of docs/evidence.md, which is written anew at the end.
// --before measures this code against a built clone of an earlier commit, in turns; results go to results/before.
// A case with `isTogether` measures all contenders of a setting in one process of a round, a moment each in
// turns: for differences below those of the machine from minute to minute. The ratios of the rounds decide
// about its bars.
// A case may have `plan()`, for settings and runs that depend on the machine, with `skipped` for contenders
// that it does not have. It may have `report(result)`, for tables of its own, additions to the stored samples,
// and files in a folder of its name.
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { againstBefore } from './lib/before.js';
import { caseNames, namedOnly, paperNames } from './lib/case-names.js';
import { endAll, runFresh } from './lib/fresh.js';
import { ensureInstalled } from './lib/install.js';
import { allowedCores, describeMachine, lineOf, placeOf } from './lib/machine.js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const options = readCommandLine();
if (options.list) {
  for (const name of [...caseNames, ...namedOnly])
    console.log(`${name.padEnd(12)} ${questionOf(name)}`);
  process.exit(0);
}
prepare();
const { interleave, judge, settingTable, verdictTable } = await import(
  '../dist/bench/report/index.js'
);
const { replaceFile } = await import('../dist/src/lib/files/replace-file.js');
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    endAll();
    process.exit(130);
  });
}

const machine = describeMachine(options.node);
console.log(
  `${machine.cpu}, ${machine.cores} cores, ${machine.kernel}, Node ${machine.node}, ` +
    `commit ${machine.commit}${machine.isChanged ? ' (changed)' : ''}, ${machine.date}`,
);
if (machine.loadBefore > 0.5) {
  console.log(`! the load average is ${machine.loadBefore.toFixed(2)}: something else runs here`);
}
const began = performance.now();
const summary = [];
for (const name of options.names) {
  const bench = await loadCase(name);
  const result = await measureCase(name, bench);
  const report = await bench.report?.(result);
  print(result, report);
  store(result, report);
  summary.push(...verdictTable(result.judged, result.figures));
}
console.log(`\n== all bars, after ${Math.round((performance.now() - began) / 1000)} s ==`);
console.log(summary.join('\n'));
if (options.isPaper && !options.isLook) await import('../scripts/evidence.mjs');

async function loadCase(name) {
  const { default: bench } = await import(new URL(`./cases/${name}.js`, import.meta.url).href);
  const planned = { ...bench, ...(await bench.plan?.()) };
  if (options.before === undefined) return planned;
  if (planned.isTogether) stop(`${name} measures all contenders in one process: not with --before`);
  return againstBefore(planned, options.before);
}

async function measureCase(name, bench) {
  const skipped = options.quick ? (bench.quickSkips ?? []) : [];
  const runs = bench.runs.filter(
    ({ setting, contender }) =>
      `${setting} ${contender}`.includes(options.only) && !skipped.includes(contender),
  );
  const { maxRounds } = placeOf(machine.node);
  const rounds = options.rounds ?? (options.quick ? 3 : Math.min(bench.rounds ?? 5, maxRounds));
  const found = new Map(runs.map((run) => [run, { samples: {}, failures: [] }]));
  const scale = options.quick ? 0.5 : 1;
  const measureOne = async ({ round, run }) => {
    record(run, round, await runFresh({ node: options.node, name, bench, run, scale }));
  };
  /** All contenders of a setting, which answer with `{ [contender]: figures }`. */
  const measureTogether = async ({ round, run: { setting } }) => {
    const run = { setting, contender: 'together' };
    const { figures, error } = await runFresh({ node: options.node, name, bench, run, scale });
    for (const each of runs.filter((other) => other.setting === setting)) {
      record(each, round, { figures: figures?.[each.contender], error });
    }
  };
  const record = (run, round, { figures = {}, error }) => {
    const { samples, failures } = found.get(run);
    if (error !== undefined) failures.push({ round: round + 1, says: error });
    for (const figure of Object.keys(bench.figures)) {
      samples[figure] ??= Array(rounds).fill(null);
      samples[figure][round] = figures[figure] ?? null;
    }
  };
  const isFirst = ({ setting }, at) => runs.findIndex((run) => run.setting === setting) === at;
  const turns = interleave(bench.isTogether ? runs.filter(isFirst) : runs, rounds);
  process.stderr.write(`\n${name}: ${turns.length} processes `);
  const start = performance.now();
  if (bench.atOnce) await Promise.all(turns.map(measureOne));
  else {
    for (const turn of turns) {
      await (bench.isTogether ? measureTogether(turn) : measureOne(turn));
      if (turn.run === turns.at(-1).run) process.stderr.write('.');
    }
  }
  process.stderr.write(` ${Math.round((performance.now() - start) / 1000)} s\n`);
  const measured = runs.map((run) => ({
    setting: run.setting,
    contender: run.contender,
    ...found.get(run),
  }));
  return {
    name,
    question: questionOf(name),
    machine,
    before: bench.before,
    rounds,
    isQuick: options.isLook,
    figures: bench.figures,
    settings: Object.fromEntries(
      Object.entries(bench.settings).map(([key, { cores, ...about }]) => [
        key,
        { ...about, cores: allowedCores().slice(0, cores).join(',') },
      ]),
    ),
    skipped: bench.skipped,
    measured,
    judged: bench.bars
      .map(({ onLines = {}, ...bar }) => {
        const judged = { ...bar, ...onLines[lineOf(machine.node)], isPaired: bench.isTogether };
        return judge(judged, bench.figures, measured);
      })
      .filter(({ verdict }) => options.before === undefined || verdict !== 'unmeasured'),
  };
}

function print(result, report) {
  const { name, question, figures, judged } = result;
  console.log(`\n== ${name}: ${question}`);
  if (report === undefined) printSettings(result);
  else console.log(report.lines.join('\n'));
  for (const { contender, says } of result.skipped ?? []) {
    console.log(`! ${contender} is left out: ${says}`);
  }
  if (judged.length > 0) console.log(`\n${verdictTable(judged, figures).join('\n')}`);
}

function printSettings({ settings, figures, measured, rounds }) {
  for (const [setting, { says, cores }] of Object.entries(settings)) {
    if (!measured.some((one) => one.setting === setting)) continue;
    console.log(`\n-- ${setting}: ${says} (cores ${cores}; median and range of ${rounds} rounds)`);
    console.log(settingTable(setting, figures, measured).join('\n'));
  }
}

function store(result, { stored = {}, files = {} } = {}) {
  const { folder: ofLine } = placeOf(machine.node);
  const ofKind = options.before === undefined ? ofLine : 'before/';
  const folder = here(`./results/${options.isLook ? 'quick/' : ofKind}`);
  const filesFolder = `${folder}${result.name}/`;
  mkdirSync(Object.keys(files).length > 0 ? filesFolder : folder, { recursive: true });
  // Whole, or as it was: a full disk destroys no earlier result.
  for (const [name, text] of Object.entries(files)) replaceFile(`${filesFolder}${name}`, text);
  const text = JSON.stringify(
    { ...result, ...stored },
    (_, value) =>
      typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value,
    1,
  );
  replaceFile(`${folder}${result.name}.json`, `${text}\n`);
}

/** Returns the first line of a case, its question. */
function questionOf(name) {
  return readFileSync(here(`./cases/${name}.js`), 'utf8')
    .split('\n')[0]
    .replace(/^\/\/ /, '');
}

function prepare() {
  if (!existsSync(here('../dist/bench/report/index.js'))) {
    stop('dist/ is not built: run `npm run build` first');
  }
  ensureInstalled(here('./rivals'), 'piscina');
}

function readCommandLine() {
  let parsed;
  try {
    parsed = parseArgs({
      allowPositionals: true,
      options: {
        quick: { type: 'boolean', default: false },
        list: { type: 'boolean', default: false },
        rounds: { type: 'string' },
        only: { type: 'string', default: '' },
        before: { type: 'string' },
        node: { type: 'string', default: process.execPath },
      },
    });
  } catch (error) {
    stop(error.message);
  }
  const { values, positionals } = parsed;
  const known = [...caseNames, ...namedOnly];
  const asked = positionals.flatMap((name) => (name === 'paper' ? paperNames : [name]));
  const unknown = asked.find((name) => !known.includes(name));
  if (unknown !== undefined)
    stop(`no case is called ${unknown}; there are ${known.join(', ')}, paper`);
  const rounds = values.rounds === undefined ? undefined : Number(values.rounds);
  if (rounds !== undefined && !(Number.isInteger(rounds) && rounds > 0)) {
    stop(`--rounds ${values.rounds} is not a whole number above 0`);
  }
  if (values.before !== undefined && !existsSync(`${values.before}/dist/bench/report/index.js`)) {
    stop(`--before ${values.before} is no built clone: run \`npm ci\` there first`);
  }
  return {
    ...values,
    rounds,
    names: asked.length > 0 ? asked : caseNames,
    isPaper: positionals.includes('paper'),
    isLook: values.quick || rounds !== undefined || values.only !== '',
  };
}

function stop(message) {
  console.error(`bench: ${message}`);
  process.exit(2);
}
