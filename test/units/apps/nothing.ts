// A module that exports no unit.
export const answer = 42;
