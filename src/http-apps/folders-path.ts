// Path of the program for folders (folders.ts).

import { fileURLToPath } from 'node:url';

/** For the command line. Its one argument is `Folders` as JSON. */
export const foldersApp = fileURLToPath(new URL('./folders.js', import.meta.url));
