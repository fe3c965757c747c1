#include <sys/types.h>

/*
 * Runs a command for the runtime of a strong sandbox, in a process that the runtime has started: see keep.c.
 *
 * Returns the exit code of the command, or 128 and the number of the signal that has ended it.
 */
int keep_command(char **arguments);

/*
 * What a keeper does when it gets a signal, or none: passes it on to the command, as an init process would, and takes leave of the
 * command and its orphans. Returns whether the command has ended.
 */
int has_ended(pid_t command, int signal, int *status);
