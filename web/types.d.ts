// Types of style sheets, which the bundler collects, and of Node's clock, used by the types of agents.
declare module '*.css';
interface Performance {
  readonly eventLoopUtilization: typeof import('node:perf_hooks').performance.eventLoopUtilization;
}
