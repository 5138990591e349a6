// Puts the programs of examples/ into README.md: after each line `<!-- example: FILE -->` stands the
// file, as a code block. With --check nothing is written, and the exit code says whether the page is
// in step with the files.
import { readFileSync, writeFileSync } from 'node:fs';

const page = readFileSync('README.md', 'utf8');
const written = page.replace(
  /(<!-- example: (\S+) -->\n)(\n```js\n[\s\S]*?\n```\n)?/g,
  (_whole, marker, file) =>
    `${marker}\n\`\`\`js\n${readFileSync(file, 'utf8').trimEnd()}\n\`\`\`\n`,
);
if (written !== page) {
  if (process.argv.includes('--check')) {
    console.error('a program in README.md is not that of examples/: npm run readme');
    process.exit(1);
  }
  writeFileSync('README.md', written);
}
