// The ways in which workers share variables with their program: with the native core, and without it.

import { nativeBinding } from '../../src/native.js';
import { ways } from '../pool/calls/ways.js';

const isShared = nativeBinding() !== undefined;

export const sharingWays = ways.filter(({ name, channel }) =>
  isShared ? channel !== 'socket' : name === 'thread over memory',
);
