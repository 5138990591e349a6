// A program on the local bus NAME: answers `who NUMBER`, counts what comes to `count`, and never answers `hang`.
//
//   node program.js NAME NUMBER

import { bus, cluster } from '../../../../src/public.js';

const [, , name, number] = process.argv;
bus.consumer(`who ${number}`, (message) => message.reply(process.pid));
bus.consumer('who', (message) => message.reply(process.pid));
bus.consumer('hang', () => {});
await cluster({ transport: 'local', name });
process.send?.('joined');
