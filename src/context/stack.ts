/** Where a call was made: an object whose `stack` is made into text only when somebody reads it. */
export interface CallSite {
  readonly stack?: string;
}
