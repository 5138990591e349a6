// Keeps a study: results.json for programs, responses.svg for people.
import { writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, release } from 'node:os';
import { join } from 'node:path';
import { drawPlot } from './plot.js';
import { compare } from './stats.js';

/** Writes both files into `folder`, which exists; gives their paths. */
export async function writeResults(folder, results, load) {
  const study = {
    madeAt: new Date().toISOString(),
    machine: {
      cpu: cpus()[0]?.model.trim() ?? 'unknown',
      cores: availableParallelism(),
      kernel: release(),
      node: process.version,
    },
    load,
    ratios: compare(results),
    results,
  };
  const paths = { json: join(folder, 'results.json'), svg: join(folder, 'responses.svg') };
  await writeFile(paths.json, `${JSON.stringify(study, undefined, 1)}\n`);
  await writeFile(paths.svg, drawPlot(study));
  return paths;
}
