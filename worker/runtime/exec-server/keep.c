/*
 * Keeps together what a command of a strong sandbox starts, so that all of it can be found and ended: its keeper is a child subreaper.
 *
 * The keeper cannot be the process that gVisor's runtime has started, as it would be under Linux. That process has no parent, and when
 * it exits, gVisor takes a descendant that exits at the same moment for the end of the sandbox's first process, and kills everything
 * in the sandbox. So the keeper is a child of the first process, and the runtime's own process, which starts and then waits for it, is
 * no subreaper and has no children. The worker finds the keeper by its name, which has the number of the other one.
 */
#define _GNU_SOURCE
#include "keep.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STREAMS = 3 };
enum { LOST = 128 + SIGKILL, FAILED = 126 };

/* The worker takes this for its answer. */
static _Noreturn void fail(int error) {
  dprintf(STDERR_FILENO, "sandgate-exec: the command could not be started: %s\n", strerror(error));
  _exit(FAILED);
}

static void close_streams(void) {
  for (int i = 0; i < STREAMS; i++) close(i);
}

/* In the command's own process. The signal that a process in the background gets for taking the terminal is blocked here. */
static _Noreturn void become(char **arguments) {
  sigset_t none;
  setpgid(0, 0);
  if (isatty(STDIN_FILENO)) tcsetpgrp(STDIN_FILENO, getpid());
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  execvp(arguments[0], arguments);
  fail(errno);
}

int has_ended(pid_t command, int signal, int *status) {
  if (signal < 0) return 0;
  if (signal != SIGCHLD) {
    kill(command, signal);
    return 0;
  }
  for (pid_t ended; (ended = waitpid(-1, status, WNOHANG)) > 0;)
    if (ended == command) return 1;
  return 0;
}

/* Signals are blocked before anything is started, so that none that comes early ends a process instead of the command. */
static sigset_t signals;

/* Says what its process id is, starts the command once it may, passes signals on to it, and says how it has ended. */
static _Noreturn void keep(pid_t starter, int may_start, int told, char **arguments) {
  char name[16], byte;
  pid_t self = getpid();
  snprintf(name, sizeof name, ".sandgate-%d", (int)starter);
  prctl(PR_SET_NAME, name, 0, 0, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (write(told, &self, sizeof self) != sizeof self || read(may_start, &byte, 1) != 1) _exit(0);
  pid_t command = vfork();
  if (command == 0) become(arguments);
  if (command < 0) fail(errno);
  close_streams();
  int status;
  while (!has_ended(command, sigwaitinfo(&signals, NULL), &status));
  _exit(write(told, &status, sizeof status) != sizeof status);
}

static pid_t keeper;

static void pass_on(int signal) {
  kill(keeper, signal);
}

/* Has the keeper get what this process is told, but not what is about this one's terminal, child or faults. */
static void pass_signals(void) {
  static const int ignored[] = {SIGTTIN, SIGTTOU, SIGTSTP, SIGPIPE, 0}, own[] = {SIGCHLD, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, 0};
  struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
  for (int signal = 1; signal <= SIGSYS; signal++) sigaction(signal, &action, NULL);
  action.sa_handler = SIG_IGN;
  for (const int *signal = ignored; *signal; signal++) sigaction(*signal, &action, NULL);
  action.sa_handler = SIG_DFL;
  for (const int *signal = own; *signal; signal++) sigaction(*signal, &action, NULL);
  sigprocmask(SIG_UNBLOCK, &signals, NULL);
}

int keep_command(char **arguments) {
  int go[2], told[2], status;
  pid_t starter = getpid();
  sigfillset(&signals);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  if (pipe2(go, O_CLOEXEC) < 0 || pipe2(told, O_CLOEXEC) < 0) fail(errno);
  /* Ends at once, so that the first process becomes the keeper's parent. */
  pid_t between = vfork();
  if (between == 0) {
    pid_t forked = fork();
    if (forked != 0) _exit(forked < 0 ? errno : 0);
    close(go[1]);
    close(told[0]);
    keep(starter, go[0], told[1], arguments);
  }
  if (between < 0) fail(errno);
  close(go[0]);
  close(told[1]);
  if (waitpid(between, &status, 0) != between || !WIFEXITED(status)) return LOST;
  if (WEXITSTATUS(status) != 0) fail(WEXITSTATUS(status));
  if (read(told[0], &keeper, sizeof keeper) != sizeof keeper) return LOST;
  pass_signals();
  close_streams();
  if (write(go[1], "", 1) != 1 || read(told[0], &status, sizeof status) != sizeof status) return LOST;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
