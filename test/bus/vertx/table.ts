// All cases of Vert.x's tests of its bus, by the files of their themes.

import { apartCases } from './apart.js';
import { bodyCases } from './bodies.js';
import type { Case } from './case.js';
import { codecCases } from './codecs.js';
import { consumerCases } from './consumers.js';
import { interceptorCases } from './interceptors.js';
import { requestCases } from './requests.js';
import { sendingCases } from './sending.js';

export const busCases: readonly Case[] = [
  ...bodyCases,
  ...requestCases,
  ...sendingCases,
  ...consumerCases,
  ...codecCases,
  ...interceptorCases,
  ...apartCases,
];
