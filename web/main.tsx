// The page of `manycore dashboard`. It runs in the browser; scripts/lib/bundle.mjs makes one file of it.
// The address says what is shown: `#123` is the program with that pid, without it all are listed.

import { render } from 'preact';
import { App } from './app.js';
import './style.css';

const root = document.getElementById('app');
if (root !== null) render(<App />, root);
