/** Our programs that are mounted into every container. */

/** Path of a sandbox's init process inside it, which reaps orphans and does nothing else. */
export const initPath = "/run/.sandgate-init";
/**
 * Like `initPath`, keeps together what a command starts, but for commands in terminals: catatonit starts its command with the
 * signals of job control blocked.
 */
export const reaperPath = "/run/.sandgate-reaper";
/** The folder in which a sandbox's exec server finds the worker, as `server.c` has it too. The sandbox can only read it. */
export const meetingPlace = "/run/.sandgate";
/** Starts commands when the worker says so. */
export const execServerPath = "/run/.sandgate-exec";
