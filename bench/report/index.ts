export { interleave } from './plan.js';
export { insertTable, readmeTable, settingTable, verdictTable } from './table.js';
export { judge } from './verdict.js';
