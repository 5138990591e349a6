// A folder as a page of links.

import { readdir } from 'node:fs/promises';
import { escaped } from '../html.js';

/** Makes the page of the folder at `folder`, whose path for clients is `path`. */
export async function listingPage(
  folder: string,
  path: string,
  hidesDotfiles: boolean,
): Promise<string> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries
    .filter(({ name }) => !hidesDotfiles || !name.startsWith('.'))
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .sort();
  const above = path === '/' ? [] : ['../'];
  const links = [...above, ...names].map(
    (name) =>
      `<li><a href="./${escaped(encodeURI(name).replace(/[?#]/g, encodeURIComponent))}">${escaped(name)}</a></li>`,
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(path)}</title>
<h1>${escaped(path)}</h1>
<ul>
${links.join('\n')}
</ul>
</html>
`;
}
