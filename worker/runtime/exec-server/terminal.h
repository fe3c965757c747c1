/* The terminal of a command that its keeper has, see terminal.c. */
#ifndef SANDGATE_TERMINAL_H
#define SANDGATE_TERMINAL_H

#include <sys/types.h>

/* What leads from a keeper of a terminal to the worker: as many descriptors as other commands have, and the pipe for reports. */
enum { INPUT, OUTPUT, WORDS, REPORTS, LEADS };

struct terminal {
  int master, slave;
  int leads[LEADS];
  /* On which the server hands over other leads; below zero when it cannot. */
  int server;
};

/* Opens a new terminal of this size, as "ROWS COLUMNS". Returns whether it could. */
int open_terminal(struct terminal *terminal, const char *size);

/*
 * Carries bytes between a terminal and the worker until its command has ended and the worker has all that the command wrote, or
 * nobody will ever take that. `has_ended` is asked whenever there is a signal. Returns whether there is somebody to report to.
 */
int carry(struct terminal *terminal, int signals, int (*has_ended)(pid_t command, int signal, int *status), pid_t command, int *status,
          void (*report_again)(int to));

#endif
