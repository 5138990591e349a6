// CommonJS on purpose: poolifier greets a cluster worker at once, and an ES module, which loads
// asynchronously, is not listening yet; the greeting is lost and the pool never answers.
const { ClusterWorker } = require('poolifier');
const tasks = require('../../lib/tasks.js');

module.exports = new ClusterWorker({ ...tasks });
