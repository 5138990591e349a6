import { ThreadWorker } from 'poolifier';
import * as tasks from '../../lib/tasks.js';

export default new ThreadWorker({ ...tasks });
