export { runTuned } from './apply.js';
export { mergedConfig, readConfigFile, writeJson } from './config-file.js';
export { type Configuration, configurationText } from './configuration.js';
export type { Goal } from './load/run-stats.js';
export type { TuneOptions } from './options.js';
export { type StartConfig, startIn, startOf } from './program/start.js';
export { type ConfigurationReport, numberText, type TuneReport } from './report.js';
export { type RunNews, tune } from './tune.js';
export { useOf } from './use.js';
