// Notices of monitors, as programs get them.

/** The end of a consumer. */
export interface ConsumerEnd {
  readonly address: string;
  /**
   * `closed`: by its owner, or with its unit. `lost`: its loop, thread, process or machine is gone. `none`: there was
   * no consumer when the monitor began.
   */
  readonly reason: 'closed' | 'lost' | 'none';
}

/** The end of an instance of a deployment. */
export interface InstanceEnd {
  /** The id and the name of the deployment. */
  readonly deployment: number;
  readonly name: string;
  /** The number of the instance in the deployment; `undefined` with `none`. */
  readonly instance: number | undefined;
  /**
   * `undeployed`: by `undeploy` or `scale`. `lost`: its loop, thread or process is gone, and it is started again.
   * `failed`: it was given up after too many restarts. `restarted`: it was stopped to start again with others of its
   * group. `none`: the deployment had ended when the monitor began.
   */
  readonly reason: 'undeployed' | 'lost' | 'failed' | 'restarted' | 'none';
  /** The cause, in words. */
  readonly why: string;
}

/** A deployment, as `deploy` returns it. */
export interface MonitoredDeployment {
  readonly id: number;
  readonly name: string;
  readonly ended: Promise<void>;
}
