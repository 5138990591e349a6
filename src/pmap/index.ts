export { hasItemIndex } from './failure.js';
export type { FillOptions, MapChannel, MapOptions, MapProgress, TypedArray } from './options.js';
export { type MapStream, pmap } from './pmap.js';
export type { MapPromise } from './prepare.js';
export type { MapStats } from './stats.js';
