// This code against an earlier commit of itself: the contenders of a case that are manycore, from both clones.
import { resolve } from 'node:path';
import { commitOf } from './machine.js';

const isMine = ({ contender }) => contender.startsWith('manycore');
/** Share of the earlier commit's speed that the later one has to keep. */
const kept = 0.98;

/** Returns the case without rivals, with each contender also from the clone in `folder`; all figures are judged. */
export function againstBefore(bench, folder) {
  const runs = bench.runs.filter(isMine).flatMap((run) => [run, beforeOf(run, resolve(folder))]);
  const bars = bench.runs.filter(isMine).flatMap((run) =>
    Object.entries(bench.figures).map(([figure, { says, better }]) => ({
      says: `${run.setting}, ${says}, against before (${run.contender})`,
      figure,
      of: run,
      against: [beforeOf(run)],
      [better === 'lower' ? 'timesFaster' : 'atLeast']: kept,
    })),
  );
  return { ...bench, runs, bars, before: commitOf(folder) };
}

function beforeOf({ setting, contender }, from) {
  return { setting, contender: `${contender} before`, from };
}
