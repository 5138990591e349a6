// Rolls the declarations up that the compiler made: one file for each entry point. Types that two entry points
// share are written into both; a class may not be shared, since each copy would be another class. The same
// once more for CommonJS: under `module: node16` TypeScript lets a CommonJS file refer to no declarations of ES
// modules.
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

/** Declarations of these entry points, as `{ fileName, code }`. Throws where two of them share a class. */
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
  const chunks = output.filter(({ isEntry }) => !isEntry);
  return output
    .filter(({ isEntry }) => isEntry)
    .map(({ fileName, code }) => ({ fileName, code: chunks.reduce(withTypesOf, code) }));
}

/** `code` with the types of a shared chunk in place of its imports of them. */
function withTypesOf(code, { fileName, code: shared }) {
  if (/^declare (abstract )?class /m.test(shared)) throw new Error(`${fileName} shares a class`);
  const from = `from './${fileName.replace('.d.ts', '.js')}';\n`;
  if (!code.includes(from)) return code;
  const [, names = ''] = /^export type \{ (.*) \};$/m.exec(shared) ?? [];
  const local = new Map(names.split(', ').map((each) => each.split(' as ').reverse()));
  const rest = code.split('\n').flatMap((line) => {
    const [, verb, list] = /^(import|export)(?: type)? \{ (.*) \} from /.exec(line) ?? [];
    if (verb === undefined || !`${line}\n`.endsWith(from)) return [line];
    const pairs = list.split(', ').map((each) => each.split(' as '));
    const other = pairs.find(([short, name = short]) => local.get(short) !== name);
    if (other) throw new Error(`${fileName}: ${other} has another name in ${local.get(other[0])}`);
    return verb === 'import'
      ? []
      : [`export type { ${pairs.map(([, name]) => name).join(', ')} };`];
  });
  return shared.replace(/^export type \{ .* \};\n?/m, '') + rest.join('\n');
}
