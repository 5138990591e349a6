// Parses the text of a stack: the locations of its frames. Not here: how it is taken (stack.ts).

/** A line of `Error.stack` with a location: file, line and column, in parentheses or bare. */
const placeInLine = /\(?((?:file|data):.*:\d+:\d+)\)?$/;

/** Innermost location in a file, other than Node's own; `undefined`: none. */
export function placeIn(stack: string | undefined): string | undefined {
  return placesIn(stack)[0];
}

/** All locations of a stack in files, as `file:///app/unit.js:12:3`, innermost first. */
export function placesIn(stack: string | undefined): readonly string[] {
  return (stack ?? '').split('\n').flatMap((line) => placeInLine.exec(line)?.[1] ?? []);
}
