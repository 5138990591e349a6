// The text of whatever was thrown: anybody may throw anything, also what has no text.

/** Never throws. */
export function messageOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? thrown.message : String(thrown);
  } catch {
    return 'a value that has no text';
  }
}
