export { Patience, patienceDefaults } from './patience.js';
export { type RestartOptions, RestartPolicy, restartDefaults } from './restart.js';
