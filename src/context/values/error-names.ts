// The names of the built-in classes of errors, as payloads have them.

export const errorNames: ReadonlySet<string> = new Set(
  'Error TypeError RangeError SyntaxError ReferenceError EvalError URIError AggregateError'.split(
    ' ',
  ),
);
