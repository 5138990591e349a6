// Copies the programs of examples/ into README.md and the guide, as a code block after each line `<!--
// example: FILE -->`. --check writes nothing, and exits with 1 where the pages differ from the files.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

const guides = readdirSync('docs/guide').filter((name) => name.endsWith('.md'));
for (const page of ['README.md', ...guides.map((name) => `docs/guide/${name}`)]) {
  const text = readFileSync(page, 'utf8');
  const written = text.replace(
    /(<!-- example: (\S+) -->\n)(\n```js\n[\s\S]*?\n```\n)?/g,
    (_whole, marker, file) =>
      `${marker}\n\`\`\`js\n${readFileSync(file, 'utf8').trimEnd()}\n\`\`\`\n`,
  );
  if (written === text) continue;
  if (process.argv.includes('--check')) {
    console.error(`a program in ${page} differs from examples/: npm run readme`);
    process.exit(1);
  }
  writeFileSync(page, written);
}
