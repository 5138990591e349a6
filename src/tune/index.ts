export { runTuned } from './apply.js';
export { mergedConfig, readConfigFile, writeJson } from './config.js';
export type { TuneOptions } from './options.js';
export { numberText, type SettingReport, type TuneReport } from './report.js';
export type { Goal } from './run-stats.js';
export { type Setting, settingText } from './setting.js';
export { type StartConfig, startIn, startOf } from './start.js';
export { type RunNews, tune } from './tune.js';
export { useOf } from './use.js';
