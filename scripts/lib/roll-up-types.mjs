// Rolls the declarations up that the compiler made: one file for each entry point, and one for what they
// share, so that a class of one entry point is that class for the others. The same once more for CommonJS:
// under `module: node16` TypeScript lets a CommonJS file refer to no declarations of ES modules.
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { doors, outdir } from './bundle.mjs';

/** Types that an entry point uses and does not name: users have no need to name them. */
const unnamed = 'PLUGIN_WARNING';

/** Does nothing without the development packages, or before anything is compiled. */
export async function rollUpTypes() {
  if (!existsSync('node_modules/rollup-plugin-dts') || !existsSync('dist/src/public.d.ts')) return;
  const output = await rollUp(Object.keys(doors));
  for (const name of readdirSync(outdir)) {
    if (/\.d\.c?ts$/.test(name)) rmSync(`${outdir}/${name}`);
  }
  for (const { fileName, code } of output) {
    writeFileSync(`${outdir}/${fileName}`, code);
    const asCommonJs = code.replace(/(from '\.\/[^']+)\.js'/g, "$1.cjs'");
    writeFileSync(`${outdir}/${fileName.replace(/\.ts$/, '.cts')}`, asCommonJs);
  }
}

/** Declarations of these entry points, as `{ fileName, code }`, and one file more for what they share. */
export async function rollUp(names) {
  const [{ rollup }, { dts }] = await Promise.all([import('rollup'), import('rollup-plugin-dts')]);
  const input = Object.fromEntries(
    names.map((name) => [name, doors[name].replace(/\.js$/, '.d.ts')]),
  );
  const rolled = await rollup({
    input,
    plugins: [dts()],
    external: (id) => !/^[./]/.test(id),
    onwarn(warning) {
      if (warning.code !== unnamed) throw new Error(warning.message);
    },
  });
  const { output } = await rolled.generate({
    entryFileNames: '[name].d.ts',
    chunkFileNames: 'shared-[hash].d.ts',
  });
  return output;
}
