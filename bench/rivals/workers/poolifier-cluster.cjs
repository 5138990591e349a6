// CommonJS on purpose: poolifier sends a cluster worker its first message at once. An ES module, which loads
// asynchronously, does not listen yet; the message is lost and the pool never answers.
const { ClusterWorker } = require('poolifier');
const tasks = require('../../lib/tasks.js');

module.exports = new ClusterWorker({ ...tasks });
