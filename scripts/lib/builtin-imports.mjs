// Imports of Node's modules in the bundle. An ES module that imports `node:fs` makes Node read each of its exports,
// also those that load more modules when they are read (bench/cases/cold.js). The bundle gets the modules from `process.getBuiltinModule`, which reads nothing.

/** A static import of values: a default one, a namespace, or names in braces. */
const imports = /^import (?!type\b)([^;'"]+?) from '(node:[\w/]+)';/gm;
/** Statements that read a module of Node all the same. */
const unknownForm = /^(?:import|export)(?! type\b)(?! \{ type )(?:[^;()='"]* from)? 'node:[^']*'/m;
const names = /^(?:(\w+)(?:, )?)?(?:\* as (\w+))?(?:\{([^}]*)\})?$/;

/** Returns the text of a TypeScript module without imports of Node's modules. Throws for a form that is not known. */
export function withoutBuiltinImports(text) {
  const made = replaced(text);
  const [left] = unknownForm.exec(made) ?? [];
  if (left !== undefined) throw new Error(`not an import: ${left}`);
  return made;
}

function replaced(text) {
  return text.replace(imports, (statement, clause, module) => {
    const [, ownName, namespace, braces] = names.exec(clause) ?? [];
    const list = (braces ?? '').split(',').map((each) => each.trim());
    const values = list.filter((each) => each !== '' && !each.startsWith('type '));
    const types = list.filter((each) => each.startsWith('type '));
    const targets = [ownName, namespace, values.length > 0 && destructured(values)].filter(Boolean);
    if (targets.length + types.length === 0) throw new Error(`not an import: ${statement}`);
    // On one line each, with as many lines as before, so that errors of the build name the right one.
    const gaps = '\n'.repeat(statement.split('\n').length - 1);
    const made = targets.map(
      (target) => `const ${target} = process.getBuiltinModule('${module}')!;`,
    );
    const kept = types.length === 0 ? '' : `import { ${types.join(', ')} } from '${module}';`;
    return kept + made.join(' ') + gaps;
  });
}

function destructured(values) {
  for (const value of values) {
    if (/^default as\b|\/[/*]/.test(value)) throw new Error(`not an import: ${value}`);
  }
  return `{ ${values.map((each) => each.replace(' as ', ': ')).join(', ')} }`;
}
