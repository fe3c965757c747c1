/** What of ours is mounted into every container. */

/** Where the waiting process of a sandbox lies inside it: reaps orphans, does nothing else. */
export const initPath = "/run/.sandgate-init";
/**
 * As `initPath` keeps together what a command starts, for commands in terminals: catatonit starts its command with the
 * signals of job control blocked.
 */
export const reaperPath = "/run/.sandgate-reaper";
