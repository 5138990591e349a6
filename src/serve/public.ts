// The public names of 'manycore/serve'. Re-exports only; api/serve.d.ts has their types.

/**
 * Servers on processes × event loops.
 *
 * @module manycore/serve
 */

export { type MetricsSource, metricsFrom } from '../agent/index.js';
export type { LoopStatus } from './control/status.js';
export type {
  AccessLogOptions,
  Placement,
  Plan,
  Range,
  ServeOptions,
  StatusAddress,
  TlsCertificate,
  TlsOptions,
} from './options.js';
export type { AccessFormat } from './output/access-line.js';
export type { OutputLine } from './output/lines.js';
export type { BoundAddress } from './protocol.js';
export {
  type OnlyOneFunction,
  onlyOne,
  type ReadinessCheck,
  readiness,
  type Self,
  self,
  stickyId,
} from './self.js';
export { type ServedApp, serve } from './serve.js';
export type { LoopState } from './shared/board.js';
export type { Sticky } from './sticky.js';
