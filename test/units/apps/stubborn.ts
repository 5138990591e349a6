// A unit whose `stop` never ends, or throws where the environment says so.

export default {
  start: () => {},
  stop: (): Promise<void> => {
    if (process.env['MANYCORE_TEST_THROWS'] !== undefined) throw new Error('it will not');
    return new Promise(() => {});
  },
};
