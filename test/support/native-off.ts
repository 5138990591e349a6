// Import for tests of what works without the native core. It comes first: a thread searches the core once.

process.env['MANYCORE_NATIVE'] = 'off';
