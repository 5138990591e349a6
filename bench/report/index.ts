export { evidenceCases, evidenceOf } from './evidence/index.js';
export { interleave } from './plan.js';
export { scalingReport, workerCounts } from './scaling/index.js';
export {
  claimsTable,
  headlineTable,
  insertTable,
  linesTable,
  settingTable,
  verdictTable,
} from './table.js';
export { judge } from './verdict.js';
