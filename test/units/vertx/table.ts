// All cases of Vert.x's tests of deployments.

import type { UnitCase } from './case.js';
import { childCases } from './children.js';
import { endCases } from './ends.js';
import { startCases } from './starts.js';

export const unitCases: readonly UnitCase[] = [...startCases, ...childCases, ...endCases];
