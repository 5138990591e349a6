// Entry of the page of `manycore dashboard`, which runs in the browser; scripts/lib/bundle.mjs bundles it
// into one file. The address selects the view: `#123` is the program with that pid; without it all programs
// are listed.

import { render } from 'preact';
import { App } from './app.js';
import './style.css';

const root = document.getElementById('app');
if (root !== null) render(<App />, root);
