// A loop in service, as the director sees it.

export interface LoopEntry {
  readonly loop: number;
  readonly pid: number;
  /** The number of the loop in its process. */
  readonly index: number;
  isLeaving: boolean;
}
