// Rolls up the declarations from the compiler: one file for each entry point. Types that two entry points
// share are written into both; a class may not be shared, since each copy would be another class. The same
// once more for CommonJS: under `module: node16` a CommonJS file cannot refer to declarations of ES modules.
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { doors } from './bundle.mjs';
import { outdir } from './bundled-urls.mjs';
import { compiledName } from './sources.mjs';

/** Warning for types that an entry point uses and does not name: users have no need to name them. */
const unnamed = 'PLUGIN_WARNING';

/** Does nothing without the development packages, or before anything is compiled. */
export async function rollUpTypes() {
  if (!existsSync('node_modules/rollup-plugin-dts') || !existsSync('dist/src/public.d.ts')) return;
  const rolled = await rollUp();
  for (const name of readdirSync(outdir)) {
    if (/\.d\.c?ts$/.test(name)) rmSync(`${outdir}/${name}`);
  }
  for (const [name, code] of rolled) {
    for (const ending of ['d.ts', 'd.cts']) writeFileSync(`${outdir}/${name}.${ending}`, code);
  }
}

/** Declarations by the name of their entry point. Throws where two of them have one class. */
export async function rollUp() {
  const [{ rollup }, { dts }] = await Promise.all([import('rollup'), import('rollup-plugin-dts')]);
  const rolled = new Map();
  const ownerOf = new Map();
  for (const [name, file] of Object.entries(doors)) {
    const bundle = await rollup({
      input: compiledName(file).replace(/\.js$/, '.d.ts'),
      plugins: [dts()],
      external: (id) => !/^[./]/.test(id),
      onwarn(warning) {
        if (warning.code !== unnamed) throw new Error(warning.message);
      },
    });
    const { output } = await bundle.generate({});
    const [{ code }] = output;
    for (const [, each] of code.matchAll(/^declare (?:abstract )?class (\w+)/gm)) {
      if (ownerOf.has(each)) throw new Error(`${ownerOf.get(each)} and ${name} have class ${each}`);
      ownerOf.set(each, name);
    }
    rolled.set(name, code);
  }
  return rolled;
}
