// Imported first by tests of what works without the native core: it is looked for once in each thread.

process.env['MANYCORE_NATIVE'] = 'off';
