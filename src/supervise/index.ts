export { type RestartOptions, RestartPolicy, restartDefaults } from './restart.js';
