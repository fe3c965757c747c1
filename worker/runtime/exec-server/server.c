/*
 * The exec server of a sandbox: starts commands for the worker, which saves a start of the OCI runtime for each.
 *
 * As the first process of the sandbox it waits until the worker listens, which is when the sandbox is limited, and then starts the
 * server as its child, once. If that one is lost, the runtime starts another, as it would start a command. Either way the server is
 * in the sandbox's namespaces and control group, with its user, capabilities, limits and filter of system calls. Commands inherit
 * them. It connects to the worker, which listens in a folder that only the worker can change, and does so again when the
 * connection has ended: the worker was restarted, or has let it go for a moment. Each message is one command, with the descriptors
 * that the command gets:
 *
 *   the last one     a pipe on which the command's keeper reports, see below
 *   three before it  standard input, output and error; input, output and words to the keeper if that has the command's
 *                    terminal, see terminal.c; absent if the worker has it
 *
 * The text of a message is made of fields that end with NUL: the terminal or nothing, the working directory, the number of
 * arguments, the arguments, the environment as NAME=value. The terminal is a path if the worker has opened it, and otherwise the
 * size, as "ROWS COLUMNS", of one that the keeper is to open. Below zero, the number of arguments is that of what the keeper is to
 * do itself, see files.c, instead of starting a command. To servers of versions without one of these, it is a mistake.
 *
 * "@PID" alone is a message as well: its descriptors replace those of a keeper that has a terminal. So a session goes on in a copy.
 * So is "+GID GID...", which puts commands into these groups from now on: the sandbox has got its files, and what they say of its user.
 *
 * Each command has a keeper, a copy of this process that inherits the command's orphans, so that all of it can be found and
 * ended. A keeper reports with lines: "K PID" first, once the command is its own, "S" when the command runs, "X STATUS" when it
 * has ended, with the status of wait(2). Instead of "S" and "X", "F STAGE ERRNO" says why it does not run. Where a command ends at
 * once, "S" and "X" are one report, which wakes the worker once. "H BYTES" answers the word to hold a terminal still.
 *
 * A command may run as the same user as this process, but cannot trace it or look into it, for it is not dumpable. If the server
 * is lost all the same, keepers go on by themselves, and the worker starts another.
 */
#define _GNU_SOURCE
#include "files.h"
#include "keep.h"
#include "root.h"
#include "terminal.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 65536, STREAMS = 3, DESCRIPTORS = STREAMS + 1, FIELDS = MESSAGE_BYTES };
/* The most keepers of terminals that can be handed other descriptors. */
enum { TERMINALS = 4096 };
/* Between attempts to reach the worker: a part of the time for which it could not be reached, within these bounds. */
enum { PAUSE_PART = 4, PAUSE_MS_MIN = 4, PAUSE_MS_MAX = 50 };
/* The same for the first process, which is waited for. */
enum { FIRST_PAUSE_PART = 16, FIRST_PAUSE_MS_MIN = 1 };

/* How long the report that a command runs waits for its end, except for one in a terminal. */
static const struct timespec at_once = {.tv_nsec = 2000000};

static const struct sockaddr_un worker = {.sun_family = AF_UNIX, .sun_path = "/run/.sandgate/worker"};

static char message[MESSAGE_BYTES + 1];
/* With room for the end of the arguments, HOME, and the end of the environment. */
static char *fields[FIELDS + 3];

/* Keepers of terminals, and the sockets on which they take descriptors. */
static struct {
  pid_t keeper;
  int socket;
} terminals[TERMINALS];
static int terminal_count;

/* What a child that shares this process's memory leaves here when the command cannot be run. */
static volatile int failed_errno;
static volatile char failed_stage;

/* Returns whether the worker has been told. */
static int report(int to, const char *format, int one, int other) {
  char line[64];
  int length = snprintf(line, sizeof line, format, one, other);
  return write(to, line, length) == length;
}

static _Noreturn void fail(int to, char stage) {
  report(to, "F %c %d\n", stage, errno);
  _exit(0);
}

static const char *variable(char *const *environment, const char *name) {
  size_t length = strlen(name);
  for (; *environment; environment++)
    if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') return *environment + length + 1;
  return NULL;
}

/* Like execvpe(3), with the PATH of the given environment. */
static void run(char *const *arguments, char *const *environment) {
  const char *program = arguments[0], *path = variable(environment, "PATH");
  if (strchr(program, '/') || !path) {
    execve(program, arguments, environment);
    return;
  }
  char file[4096];
  int denied = 0;
  for (const char *end; ; path = end + 1) {
    end = strchr(path, ':');
    int length = end ? (int)(end - path) : (int)strlen(path);
    if (snprintf(file, sizeof file, "%.*s/%s", length, path, program) < (int)sizeof file) execve(file, arguments, environment);
    if (errno == EACCES) denied = 1;
    else if (errno != ENOENT && errno != ENOTDIR) return;
    if (!end) break;
  }
  errno = denied ? EACCES : ENOENT;
}

static _Noreturn void give_up(char stage) {
  failed_errno = errno;
  failed_stage = stage;
  _exit(127);
}

/*
 * In the command's own process. In a terminal of the sandbox's own it leads a session, as a shell does that is logged in: CRIU gives
 * a terminal back to the leader alone. One of the worker's is its keeper's.
 */
static _Noreturn void become(char **arguments, char **environment, const int *streams, int has_terminal, int is_workers) {
  sigset_t none;
  if (has_terminal && !is_workers) {
    setsid();
    ioctl(streams[0], TIOCSCTTY, 0);
  } else setpgid(0, 0);
  /* The signal that this gives to a process in the background is blocked here. */
  if (has_terminal) tcsetpgrp(streams[0], getpid());
  for (int i = 0; i < STREAMS; i++)
    if (dup2(streams[i], i) < 0) give_up('d');
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  run(arguments, environment);
  give_up('e');
}

/* Reports that a command runs, and when it has ended. */
static void follow(pid_t command, const sigset_t *signals, int has_terminal, int to) {
  int status, is_over = !has_terminal && has_ended(command, sigtimedwait(signals, NULL, &at_once), &status);
  if (!is_over) {
    report(to, "S\n", 0, 0);
    while (!has_ended(command, sigwaitinfo(signals, NULL), &status));
  }
  report(to, is_over ? "S\nX %d\n" : "X %d\n", status, 0);
}

static void report_again(int to) {
  report(to, "K %d\nS\n", getpid(), 0);
}

/* The same for a command whose terminal this process has. */
static void follow_in(struct terminal *terminal, pid_t command, sigset_t *signals) {
  int status;
  report(terminal->leads[REPORTS], "S\n", 0, 0);
  /* The other ends of pipes may be gone, which must not be taken for a signal to the command. */
  signal(SIGPIPE, SIG_IGN);
  sigdelset(signals, SIGPIPE);
  sigprocmask(SIG_SETMASK, signals, NULL);
  int told = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (told >= 0 && carry(terminal, told, has_ended, command, &status, report_again)) report(terminal->leads[REPORTS], "X %d\n", status, 0);
}

/* Where this process reports on what it does itself, and whether it has reported that it runs. */
static int own_reports, has_begun;

static void begin_own_work(void) {
  has_begun = report(own_reports, "S\n", 0, 0);
}

/* Does what a message says. The descriptors are above the standard streams. */
static _Noreturn void keep(char *text, int length, int *streams, int count, int server) {
  int to = streams[count - 1];
  prctl(PR_SET_NAME, ".sandgate-keep", 0, 0, 0);
  if (!report(to, "K %d\n", getpid(), 0)) _exit(1);
  int found = 0;
  for (char *at = text; at < text + length && found < FIELDS; at += strlen(at) + 1) fields[found++] = at;
  errno = EINVAL;
  int arguments = found > 3 ? atoi(fields[2]) : 0, is_own_work = arguments < 0;
  if (is_own_work) arguments = -arguments;
  if (arguments < 1 || arguments > found - 3) fail(to, 'm');
  char *terminal = fields[0], *folder = fields[1], **argv = fields + 3, **environment = argv + arguments;
  int has_terminal = *terminal != 0, is_workers = *terminal == '/';
  if (is_workers == (count == DESCRIPTORS)) fail(to, 'm');
  if (is_own_work) {
    prctl(PR_SET_NAME, ".sandgate-file", 0, 0, 0);
    if (chdir(folder) < 0) fail(to, 'c');
    own_reports = to;
    int code = work_on_file(argv, arguments, streams, begin_own_work);
    /* As the exit code of a program. */
    report(to, has_begun ? "X %d\n" : "S\nX %d\n", code << 8, 0);
    _exit(0);
  }
  /* Makes room for the end of the arguments. */
  memmove(environment + 1, environment, (found - 3 - arguments) * sizeof *environment);
  *environment++ = NULL;
  environment[found - 3 - arguments] = NULL;
  char home[4096];
  if (!variable(environment, "HOME") && getenv("HOME") && snprintf(home, sizeof home, "HOME=%s", getenv("HOME")) < (int)sizeof home) {
    environment[found - 3 - arguments] = home;
    environment[found - 2 - arguments] = NULL;
  }

  sigset_t signals;
  sigfillset(&signals);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  signal(SIGCHLD, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  setsid();
  struct terminal own = {.server = server};
  if (has_terminal) {
    if (!is_workers) memcpy(own.leads, streams, sizeof own.leads);
    int opened = is_workers ? open(terminal, O_RDWR | O_CLOEXEC) : open_terminal(&own, terminal) ? own.slave : -1;
    if (opened < 0) fail(to, 't');
    /* Of a session leader without one, it becomes the terminal. */
    if (is_workers) ioctl(opened, TIOCSCTTY, 0);
    streams[0] = streams[1] = streams[2] = opened;
  }
  if (chdir(folder) < 0) fail(to, 'c');

  /* The child has this process's memory, and this process goes on when the child has another program or has ended. */
  pid_t command = vfork();
  if (command == 0) become(argv, environment, streams, has_terminal, is_workers);
  if (command < 0) fail(to, 'f');
  if (failed_stage) {
    errno = failed_errno;
    fail(to, failed_stage);
  }
  /* From here on the command is kept, also if the worker is gone: its next process ends what it finds under a keeper. */
  if (has_terminal && !is_workers) {
    follow_in(&own, command, &signals);
    _exit(0);
  }
  for (int i = 0; i < STREAMS; i++) {
    close(streams[i]);
    if (has_terminal) break;
  }
  follow(command, &signals, has_terminal, to);
  _exit(0);
}

/* Forgets keepers of terminals that are gone. */
static void sweep_terminals(void) {
  int kept = 0;
  for (int i = 0; i < terminal_count; i++) {
    struct pollfd other = {.fd = terminals[i].socket};
    if (poll(&other, 1, 0) > 0 && other.revents & POLLHUP) close(terminals[i].socket);
    else terminals[kept++] = terminals[i];
  }
  terminal_count = kept;
}

/* Starts the keeper of a message. */
static void start(char *text, int length, int *streams, int count) {
  int sockets[2] = {-1, -1};
  if (*text && *text != '/') {
    sweep_terminals();
    if (terminal_count < TERMINALS) socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets);
  }
  pid_t keeper = fork();
  if (keeper == 0) {
    /* Not closed, so that nothing else becomes a standard stream by chance. */
    dup2(STDOUT_FILENO, STDIN_FILENO);
    for (int i = 0; i < terminal_count; i++) close(terminals[i].socket);
    if (sockets[0] >= 0) close(sockets[0]);
    keep(text, length, streams, count, sockets[1]);
  }
  if (keeper < 0) report(streams[count - 1], "F %c %d\n", 'f', errno);
  if (sockets[0] < 0) return;
  close(sockets[1]);
  if (keeper < 0) close(sockets[0]);
  else {
    terminals[terminal_count].keeper = keeper;
    terminals[terminal_count++].socket = sockets[0];
  }
}

/* Has the commands that start from now on be in these groups, and reports that they are. */
static void join(char *text, int to) {
  gid_t groups[GROUPS_MAX];
  int count = 0;
  for (char *end; count < GROUPS_MAX && (groups[count] = strtoul(text, &end, 10), end != text); text = end) count++;
  if (setgroups(count, groups) == 0) report_again(to);
}

/* Hands descriptors over to the keeper of a terminal, if there is such a one. */
static void hand_over(pid_t keeper, const struct cmsghdr *rights) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int) * DESCRIPTORS)];
  } control = {.bytes = {0}};
  memcpy(&control, rights, CMSG_LEN(sizeof(int) * DESCRIPTORS));
  struct iovec text = {.iov_base = "@", .iov_len = 1};
  struct msghdr sent = {.msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  for (int i = 0; i < terminal_count; i++)
    if (terminals[i].keeper == keeper) sendmsg(terminals[i].socket, &sent, MSG_DONTWAIT);
}

/* Takes commands from standard input until the worker is gone, or lets go of this server. */
static void serve(void) {
  for (;;) {
    union {
      struct cmsghdr header;
      char bytes[CMSG_SPACE(sizeof(int) * DESCRIPTORS)];
    } control;
    struct iovec text = {.iov_base = message, .iov_len = MESSAGE_BYTES};
    struct msghdr received = {.msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t length = recvmsg(STDIN_FILENO, &received, MSG_CMSG_CLOEXEC);
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) return;
    message[length] = 0;
    struct cmsghdr *header = CMSG_FIRSTHDR(&received);
    if (!header || header->cmsg_type != SCM_RIGHTS) continue;
    int streams[DESCRIPTORS + STREAMS], count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(streams, CMSG_DATA(header), count * sizeof(int));
    int is_whole = !(received.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
    if (is_whole && *message == '@' && count == DESCRIPTORS) hand_over(atoi(message + 1), header);
    else if (is_whole && *message == '+' && count == 1) join(message + 1, *streams);
    else if (is_whole && (count == 1 || count == DESCRIPTORS)) start(message, length, streams, count);
    for (int i = 0; i < count; i++) close(streams[i]);
  }
}

static struct timespec time_of(long ms) {
  return (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
}

/* The next pause of who has waited for so long: a part of that, within bounds. */
static long pause_of(long waited_ms, long part, long ms_min) {
  long pause_ms = waited_ms / part;
  return pause_ms < ms_min ? ms_min : pause_ms > PAUSE_MS_MAX ? PAUSE_MS_MAX : pause_ms;
}

/* Makes a connection to the worker standard input. */
static void reach_worker(void) {
  for (long waited_ms = 0;;) {
    int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int is_reached = connection >= 0 && connect(connection, (const struct sockaddr *)&worker, sizeof worker) == 0;
    if (is_reached) dup2(connection, STDIN_FILENO);
    if (connection >= 0) close(connection);
    if (is_reached) return;
    long pause_ms = pause_of(waited_ms, PAUSE_PART, PAUSE_MS_MIN);
    struct timespec time = time_of(pause_ms);
    nanosleep(&time, NULL);
    waited_ms += pause_ms;
  }
}

/* Becomes the server, with streams that lead nowhere. */
static _Noreturn void be_server(void) {
  prctl(PR_SET_NAME, ".sandgate-exec", 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  setsid();
  int nothing = open("/dev/null", O_RDWR);
  if (nothing >= 0) {
    for (int i = 0; i < STREAMS; i++) dup2(nothing, i);
    if (nothing > STDERR_FILENO) close(nothing);
  }
  /* The kernel forgets keepers that have ended. */
  signal(SIGCHLD, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  for (;;) {
    reach_worker();
    serve();
    dup2(STDOUT_FILENO, STDIN_FILENO);
  }
}

/* Starts the server from the first process, whose signals are blocked. */
static void start_server(const sigset_t *signals, const char *pending) {
  if (fork() != 0) return;
  sigprocmask(SIG_UNBLOCK, signals, NULL);
  if (pending) {
    struct rlimit limit = {.rlim_cur = strtoul(pending, NULL, 10), .rlim_max = strtoul(pending, NULL, 10)};
    if (setrlimit(RLIMIT_SIGPENDING, &limit) < 0) _exit(1);
  }
  be_server();
}

/*
 * The first process: reaps orphans, and ends when it is told to from outside the sandbox. Until it has started the server it has the
 * server's name, by which the worker knows that one will come.
 */
static _Noreturn void be_first(const char *pending) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  for (long waited_ms = 0, has_server = 0;;) {
    if (!has_server && access(worker.sun_path, F_OK) == 0) {
      /* In this order, so that the worker sees at every moment that a server is there or will come. */
      start_server(&signals, pending);
      prctl(PR_SET_NAME, ".sandgate-first", 0, 0, 0);
      has_server = 1;
    }
    long pause_ms = pause_of(waited_ms, FIRST_PAUSE_PART, FIRST_PAUSE_MS_MIN);
    struct timespec time = time_of(pause_ms);
    siginfo_t told;
    int signal = has_server ? sigwaitinfo(&signals, &told) : sigtimedwait(&signals, &told, &time);
    if (signal < 0) waited_ms += pause_ms;
    /* Without a sender, as processes outside have no number in here. */
    else if (signal != SIGCHLD && told.si_pid == 0) _exit(0);
    while (waitpid(-1, NULL, WNOHANG) > 0);
  }
}

/*
 * The argument, if there is one, is the most signals that may wait for the server and its commands; or else what else this program is
 * to do: outside of sandboxes, and in strong ones.
 */
int main(int count, char **arguments) {
  if (count > 2 && strcmp(arguments[1], "keep") == 0) return keep_command(arguments + 2);
  if (count > 1 && strcmp(arguments[1], "root") == 0) return enter_root(count - 2, arguments + 2);
  if (getpid() == 1) be_first(count > 1 ? arguments[1] : NULL);
  /* A child of the sandbox's first process, which outlives the runtime's own start of this program. */
  pid_t server = fork();
  if (server != 0) return server < 0;
  be_server();
}
