// Takes the terminal as `manycore top` does, and crashes.

import { Terminal } from '../../../src/cli/commands/top/terminal.js';

const terminal = new Terminal({ onKey: () => crash(), onChange: () => {} });
terminal.draw([[{ text: 'about to crash', tone: 'alarm' }]]);

function crash(): never {
  throw new Error('a crash');
}
