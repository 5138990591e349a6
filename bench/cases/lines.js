// How many lines does the same parallel map take, by the model in which it is written?
// Each program compares pairs of files. It is run, and its answer checked, before its lines are counted.
// Lines count that are neither empty nor only a comment, in all files that a model needs beyond the plain
// program's own function. One formatter formats them all.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { counted, runsOf } from '../lib/figures.js';

const filesOf = {
  'one process': ['paper/lines/one-process.js'],
  pmap: ['paper/lines/pmap.js'],
  'worker pool': ['rivals/lines/worker-pool.js', 'rivals/lines/worker-pool-worker.js'],
  'master and slaves': ['paper/lines/master-slave.js', 'paper/lines/master-slave-slave.js'],
};
const at = (file) => new URL(`../${file}`, import.meta.url);
const side = (contender) => ({ setting: 'compare', contender });

export default {
  figures: { lines: counted('lines', 'lines') },
  settings: { compare: { says: 'a map over pairs of files, on all cores, results in order' } },
  runs: runsOf('compare', Object.keys(filesOf)),
  rounds: 1,
  bars: [
    {
      says: 'lines of a parallel map, against master and slaves by hand',
      figure: 'lines',
      of: side('pmap'),
      against: [side('master and slaves')],
      atMost: 0.35,
    },
  ],
  async measure({ contender }) {
    const files = filesOf[contender];
    const own = Object.values(filesOf)
      .flat()
      .map((file) => fileURLToPath(at(file)));
    const pairs = own.flatMap((a) => own.map((b) => [a, b]));
    const { compareAll } = await import(at(files[0]).href);
    const { compareAll: plainly } = await import(at('paper/lines/one-process.js').href);
    if (!isDeepStrictEqual(await compareAll(pairs), await plainly(pairs))) {
      throw new Error("its answer differs from the plain program's");
    }
    return { lines: files.reduce((sum, file) => sum + linesOf(file), 0) };
  },
};

function linesOf(file) {
  const lines = readFileSync(at(file), 'utf8').split('\n');
  return lines.filter((line) => !/^\s*(\/\/.*|\*.*|\/\*.*)?$/.test(line)).length;
}
