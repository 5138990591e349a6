// Marks on the names of re-created code, by which stacks lead back to the text at home.
// Not here: the places in that text (toolchains/stack.ts).

import { sendingHalf } from '../late.js';

/**
 * Prefix of the names of re-created code. The name is then no file, which keeps it out of the user's
 * coverage. It also marks a frame as a place in the text that ran at home. Stacks lose it at the caller.
 */
export const copyPrefix = 'manycore:';

const markedByPeers = new Set<string>();

/** Notes the name of code that a peer sent. */
export function noteMark(fileName: string): void {
  if (fileName.startsWith(copyPrefix)) markedByPeers.add(fileName.slice(copyPrefix.length));
}

/** True: a peer has a map for places in the script `name`. */
export function isMarkedByPeer(name: string): boolean {
  return markedByPeers.has(name);
}

/** `stack` with each frame of re-created code at its place in the user's source. */
export function unmarked(stack: string): string {
  return stack.includes(copyPrefix) ? sendingHalf().withOriginals(stack) : stack;
}
