// What the text of a stack says: where its thread is. Not here: how it is taken (stack.ts).

/** A line of `Error.stack` that names a place: the file with line and column, in parentheses or bare. */
const placeInLine = /\(?((?:file|data):.*:\d+:\d+)\)?$/;

/** Where the thread is: the innermost place in a file, of Node's own none; `undefined` where there is none. */
export function placeIn(stack: string | undefined): string | undefined {
  return placesIn(stack)[0];
}

/** All places of a stack that are in files, as `file:///app/unit.js:12:3`, innermost first. */
export function placesIn(stack: string | undefined): readonly string[] {
  return (stack ?? '').split('\n').flatMap((line) => placeInLine.exec(line)?.[1] ?? []);
}
