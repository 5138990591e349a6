// Frames that came over a channel while a definition loads its modules, in order: they may need that
// definition.

import { abortsNext, frame } from '../protocol.js';

export interface HeldFrame {
  /** Kind of a frame; `undefined` for the end of the channel. */
  readonly kind: number | undefined;
  readonly task: number;
  readonly deliver: () => void;
}

/**
 * Puts a frame behind those that are held. An abort goes before its call, so that the call never begins.
 * `deliver` gets the target of the frame.
 */
export function holdFrame(
  held: HeldFrame[],
  { kind, task, target }: { readonly kind: number; readonly task: number; readonly target: number },
  deliver: (target: number) => void,
): void {
  const at =
    kind === frame.abort
      ? held.findLastIndex((each) => each.task === task && isCall(each.kind))
      : -1;
  if (at < 0) held.push({ kind, task, deliver: () => deliver(target) });
  else held.splice(at, 0, { kind, task, deliver: () => deliver(abortsNext) });
}

function isCall(kind: number | undefined): boolean {
  return kind === frame.call || kind === frame.callWithState || kind === frame.chunk;
}
