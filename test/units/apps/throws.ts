// A module that cannot be loaded.
throw new Error('not today');
