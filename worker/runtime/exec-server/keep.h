/*
 * Runs a command for the runtime of a strong sandbox, in a process that the runtime has started: see keep.c.
 *
 * Returns the exit code of the command, or 128 and the number of the signal that has ended it.
 */
int keep_command(char **arguments);
