/*
 * Terminals whose both sides are in the sandbox: a command has one, and its keeper the other, which carries bytes between it and
 * the worker's pipes. So a copy of the sandbox has a whole terminal, and only the pipes lead out of it. In a copy nobody is at
 * their other ends: its keepers hold what they have, and go on when they are handed pipes to the worker of the copy.
 *
 * CRIU would write what the kernel holds of a terminal back to it, by which lines end twice and what was typed is echoed again. So
 * before an image is taken, the worker has the terminal hold still: its programs wait when they write, and nothing is typed.
 */
#define _GNU_SOURCE
#include "terminal.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

enum { INPUT_BYTES = 4096, OUTPUT_BYTES = 65536, WORDS_BYTES = 4096 };
/* As much as the kernel may hold of what was written to a terminal. */
enum { LAST_BYTES = 2 * OUTPUT_BYTES };

struct buffer {
  char *bytes;
  int from, to, most;
};

static char input_bytes[INPUT_BYTES], output_bytes[OUTPUT_BYTES + LAST_BYTES];

static int is_empty(const struct buffer *buffer) {
  return buffer->from == buffer->to;
}

static void drop(int *descriptor) {
  if (*descriptor >= 0) close(*descriptor);
  *descriptor = -1;
}

/* Reads what there is and fits, at most so many bytes. Returns how many bytes there were, or -1 at the end. */
static int fill(struct buffer *buffer, int from, int most) {
  if (is_empty(buffer)) buffer->from = buffer->to = 0;
  int room = buffer->most - buffer->to;
  if (room <= 0) return 0;
  int length = read(from, buffer->bytes + buffer->to, room < most ? room : most);
  if (length > 0) buffer->to += length;
  return length > 0 ? length : length < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

/* Writes what there is and is taken. Returns whether somebody is there to take it. */
static int empty(struct buffer *buffer, int to) {
  if (is_empty(buffer)) return 1;
  int length = write(to, buffer->bytes + buffer->from, buffer->to - buffer->from);
  if (length > 0) buffer->from += length;
  return length >= 0 || errno == EAGAIN || errno == EINTR;
}

static void resize(int terminal, const char *size) {
  int rows, columns;
  if (sscanf(size, "%d %d", &rows, &columns) != 2) return;
  struct winsize window = {.ws_row = rows, .ws_col = columns};
  ioctl(terminal, TIOCSWINSZ, &window);
}

/* Whether programs of the terminal can write. */
static void let_write(struct terminal *terminal, int may) {
  tcflow(terminal->slave, may ? TCOON : TCOOFF);
}

static int open_slave(struct terminal *terminal) {
  if (terminal->slave < 0) terminal->slave = ioctl(terminal->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  return terminal->slave >= 0;
}

/*
 * Holds still, and reports how much of what was typed the programs have not read. Nobody but they has their side open then: CRIU looks
 * at a terminal once, by whoever has it first, and for the keeper it is not the controlling one, so that in a copy it would be nobody's.
 */
static void hold(struct terminal *terminal, struct buffer *output) {
  if (!open_slave(terminal)) {
    dprintf(terminal->leads[REPORTS], "H 1\n");
    return;
  }
  let_write(terminal, 0);
  output->most = OUTPUT_BYTES + LAST_BYTES;
  while (output->to < output->most && fill(output, terminal->master, LAST_BYTES) > 0);
  int unread = 0;
  ioctl(terminal->slave, FIONREAD, &unread);
  drop(&terminal->slave);
  dprintf(terminal->leads[REPORTS], "H %d\n", unread);
}

static void go_on(struct terminal *terminal, struct buffer *output) {
  if (open_slave(terminal)) let_write(terminal, 1);
  output->most = OUTPUT_BYTES;
}

/* Does what the worker says, each in a line: a size, or "H" to hold still, or "G" to go on. Returns whether to hold still now. */
static int take_words(struct terminal *terminal, struct buffer *output, int is_held) {
  char words[WORDS_BYTES + 1];
  int length = read(terminal->leads[WORDS], words, WORDS_BYTES);
  if (length == 0) drop(&terminal->leads[WORDS]);
  if (length <= 0) return is_held;
  words[length] = 0;
  for (char *rest, *word = strtok_r(words, "\n", &rest); word; word = strtok_r(NULL, "\n", &rest)) {
    if (*word == 'H') hold(terminal, output);
    else if (*word == 'G') go_on(terminal, output);
    else resize(terminal->master, word);
    is_held = *word == 'H' || (is_held && *word != 'G');
  }
  return is_held;
}

static void never_wait(const int *leads) {
  for (int i = 0; i < REPORTS; i++) fcntl(leads[i], F_SETFL, O_NONBLOCK);
}

/* Returns whether there are other leads now. */
static int take_leads(struct terminal *terminal) {
  char text[16];
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int) * LEADS)];
  } control;
  struct iovec part = {.iov_base = text, .iov_len = sizeof text};
  struct msghdr received = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  if (recvmsg(terminal->server, &received, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) <= 0) {
    if (errno != EAGAIN && errno != EINTR) drop(&terminal->server);
    return 0;
  }
  struct cmsghdr *header = CMSG_FIRSTHDR(&received);
  if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int) * LEADS)) return 0;
  for (int i = 0; i < LEADS; i++) drop(&terminal->leads[i]);
  memcpy(terminal->leads, CMSG_DATA(header), sizeof terminal->leads);
  never_wait(terminal->leads);
  return 1;
}

int open_terminal(struct terminal *terminal, const char *size) {
  int locked = 0;
  terminal->master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (terminal->master < 0 || ioctl(terminal->master, TIOCSPTLCK, &locked) < 0) return 0;
  terminal->slave = -1;
  if (!open_slave(terminal)) return 0;
  resize(terminal->master, size);
  never_wait(terminal->leads);
  return 1;
}

int carry(struct terminal *terminal, int signals, int (*has_ended)(pid_t command, int signal, int *status), pid_t command, int *status,
          void (*report_again)(int to)) {
  struct buffer input = {.bytes = input_bytes, .most = INPUT_BYTES}, output = {.bytes = output_bytes, .most = OUTPUT_BYTES};
  int *leads = terminal->leads, is_over = 0, is_held = 0, last = LAST_BYTES;
  for (;;) {
    if (is_empty(&output)) output.from = output.to = 0;
    /* Nothing more comes when a read finds nothing. */
    while (is_over && last > 0 && output.to < output.most) {
      int length = fill(&output, terminal->master, last);
      last = length > 0 ? last - length : 0;
    }
    if (is_over && last <= 0 && is_empty(&output) && leads[OUTPUT] >= 0) return 1;
    if (is_over && leads[OUTPUT] < 0 && terminal->server < 0) return 0;
    int has_room = !is_over && leads[OUTPUT] >= 0 && output.to < output.most;
    struct pollfd polled[] = {
        {.fd = signals, .events = POLLIN},
        {.fd = terminal->server, .events = POLLIN},
        {.fd = leads[WORDS], .events = POLLIN},
        {.fd = is_empty(&input) && !is_held ? leads[INPUT] : -1, .events = POLLIN},
        {.fd = is_held ? -1 : terminal->master, .events = (has_room ? POLLIN : 0) | (is_empty(&input) ? 0 : POLLOUT)},
        {.fd = leads[OUTPUT], .events = is_empty(&output) ? 0 : POLLOUT},
    };
    if (poll(polled, sizeof polled / sizeof *polled, -1) < 0) continue;
    struct signalfd_siginfo told;
    if (polled[0].revents && read(signals, &told, sizeof told) == sizeof told && !is_over) is_over = has_ended(command, told.ssi_signo, status);
    if (polled[1].revents && take_leads(terminal)) {
      report_again(leads[REPORTS]);
      go_on(terminal, &output);
      is_held = 0;
      continue;
    }
    if (polled[2].revents) is_held = take_words(terminal, &output, is_held);
    if (polled[3].revents && fill(&input, leads[INPUT], INPUT_BYTES) < 0) drop(&leads[INPUT]);
    if (!is_held && !empty(&input, terminal->master)) input.from = input.to;
    while (polled[4].revents & POLLIN && has_room && output.to < output.most && fill(&output, terminal->master, OUTPUT_BYTES) > 0);
    if (leads[OUTPUT] >= 0 && (polled[5].revents & (POLLERR | POLLHUP) || !empty(&output, leads[OUTPUT]))) drop(&leads[OUTPUT]);
  }
}
