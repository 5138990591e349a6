// The text of a factory: the variables around a function, and the way in which each takes its value. A `const`
// is as fast as at home, because V8 folds the value of an immutable slot into optimised code. It reloads and
// checks a `let` at each use (bench/cases/kernels.js).
// A `const` is initialised once, but functions that capture each other exist before their values do. So a
// factory with late values is a generator: it makes its functions, pauses, and initialises its other
// variables when it goes on. A function that captures itself needs no other form.
// Not here: compiling the text (recreate.ts), the choice for each value (plans.ts).

import type { CodeDefinition } from '../protocol.js';

/**
 * The binding of each slot, one character a slot. A digit is a `const` and the stage at which its value is
 * there: 0 before the function is made, 1 to 3 see `Decoding.run`.
 */
export type Plan = string;

/** A variable, for a value that may be replaced. */
export const variable = 'v';
export const lastStage = 3;

/** The binding of the slots where all values are there at once. */
export function usualPlan(definition: CodeDefinition): Plan {
  const { slots, variables } = definition;
  // Names that are no names of a `const`, or not in a generator.
  if (slots.includes('let') || slots.includes('yield')) return variable.repeat(slots.length);
  return slots.map((name) => (variables.includes(name) ? variable : '0')).join('');
}

/** The last stage at which `plan` awaits a value. */
export function stagesOf(plan: Plan): number {
  for (let stage = lastStage; stage > 0; stage -= 1) if (plan.includes(String(stage))) return stage;
  return 0;
}

/** The text before and after that of a function, which evaluates to `body` where `make()` is called. */
export function factoryText(
  definition: CodeDefinition,
  plan: Plan,
): [before: string, after: string] {
  const { slots, prefix, isStrict, privates } = definition;
  const given = `${prefix}s`;
  const last = stagesOf(plan);
  const sets = (binding: string): string[] =>
    slots.flatMap((name, at) => (plan[at] === binding ? [`${name}=${given}[${at}]`] : []));
  const constants = (stage: number): string => {
    const list = sets(String(stage));
    return list.length > 0 ? `const ${list.join()};` : '';
  };
  const variables = sets(variable);
  // `let` may be the name of a variable in sloppy code, but not of a `let`.
  const declare = slots.includes('let') ? 'var' : 'let';
  const hasPrivates = privates.length > 0;
  const before =
    (isStrict ? '"use strict";' : '') +
    `return function${last > 0 ? '*' : ''}(${given}){` +
    (variables.length > 0 ? `${declare} ${variables.join()};` : '') +
    constants(0) +
    (hasPrivates ? `const ${prefix}={p:undefined};` : '') +
    (last > 0 ? `${given}=yield ` : 'return ') +
    (hasPrivates ? `{privates(){return ${prefix}.p},` : '{') +
    `fill(${given}){${variables.join(';')}},read(){return[${slots.join()}]},make(){return (`;
  let after = ')}}';
  for (let stage = 1; stage <= last; stage += 1) {
    after += `;${constants(stage)}${stage < last ? `${given}=yield` : ''}`;
  }
  return [before, `${after}}`];
}
