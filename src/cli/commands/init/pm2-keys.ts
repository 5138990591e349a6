// Keys of an ecosystem file that have another name, or no counterpart in a configuration of `manycore serve`.

/** Other names of keys, in the form with underscores. */
export const aliases: Readonly<Record<string, string>> = {
  exec: 'script',
  exec_interpreter: 'interpreter',
  interpreter_args: 'node_args',
  out: 'out_file',
  output: 'out_file',
  out_log: 'out_file',
  error: 'error_file',
  err: 'error_file',
  err_file: 'error_file',
  err_log: 'error_file',
  log: 'log_file',
  pid: 'pid_file',
  cron: 'cron_restart',
  combine_logs: 'merge_logs',
  user: 'uid',
};

export const oneLog = 'both streams go to one log, and each line says which';
const delays = 'delays between restarts grow by themselves, from 50 ms to 5 s';
const watched = 'node_modules, .git, logs, pid files and sockets are always ignored';
export const ofPm2 = 'it is for PM2 itself and its services';

/** Keys without a counterpart, with the way out; a value that changes nothing has no note. */
export const waysOut: Readonly<Record<string, string>> = {
  append_env_to_name: 'give the app another name',
  autorestart: 'a process that ends is replaced; leave jobs that end to a timer of systemd',
  deploy: 'copy the program, then start manycore reload',
  disable_logs: 'send the output of the command to /dev/null',
  exp_backoff_restart_delay: delays,
  filter_env: 'start the command under env -i, or with UnsetEnvironment= of systemd',
  ignore_watch: watched,
  increment_var: 'compute it from self.instance of manycore/serve; loops share their ports',
  log_date_format: 'times in logs are ISO 8601, in UTC',
  min_uptime: 'a process that has served for 10 s ends a row of failures',
  name_prefix: 'give the app another name',
  namespace: 'the apps of one configuration start and end together',
  restart_delay: delays,
  shutdown_with_message: 'let the program listen for SIGTERM, or for manycore:server:drain',
  stop_exit_codes: 'a process that ends is replaced, whatever its exit code',
  wait_ready: 'a process is ready when its program listens: let it listen when it is ready',
  watch_delay: 'the server reloads when files have not changed for a moment',
  watch_options: watched,
};

/** Keys that say nothing about the app. */
const keysOfPm2 =
  'vizion pmx automation trace disable_trace treekill force io post_update v8 event_loop_inspector deep_monitoring ' +
  'windows_hide kill_retry_time write install_url execute_command username disable_source_map_support';
export const ignored: ReadonlySet<string> = new Set(keysOfPm2.split(' '));
