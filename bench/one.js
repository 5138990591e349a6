// Measures one contender of one case once, in a process of its own. run.js starts it, reads the answer from
// descriptor 3 and then ends this process group. Nothing is closed here: some rivals never return from
// closing, and the cost of closing is not measured.
import { writeSync } from 'node:fs';

const [name, setting, contender, scale] = process.argv.slice(2);
const answer = (value) => writeSync(3, `${JSON.stringify(value)}\n`);
const refuse = (error) => {
  answer({ error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) });
};

process.on('uncaughtException', refuse);
process.on('unhandledRejection', refuse);
try {
  const { default: bench } = await import(new URL(`./cases/${name}.js`, import.meta.url).href);
  answer({ figures: await bench.measure({ contender, setting, scale: Number(scale) }) });
} catch (error) {
  refuse(error);
}
// Stay until ended: leaving by oneself runs exit handlers, which may hang as well.
setInterval(() => {}, 1000);
