/*
 * Files that a keeper reads, and small ones that it writes, itself, which saves the start of programs for each. It does so with the
 * user, the capabilities, the limits and the working directory of a command. Whatever it does not expect it takes back and leaves to
 * programs (upload.ts and download.ts), which then find the reason as well, so that there is one account of what may go wrong.
 */
#define _GNU_SOURCE
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { FILE_BYTES = 65536, PATH_BYTES = 4096 };
/* Those of the programs, and one for what is left to them. */
enum { DONE = 0, CUT = 2, EXISTS = 17, IS_DIRECTORY = 21, NOT_A_FILE = 22, NOT_FOUND = 44, LEFT = 46 };

static char content[FILE_BYTES];

/* Whether the kernel makes up the content on reading (proc, sysfs, cgroups, message queues): there, the size says nothing. */
static int is_made_up(int file) {
  static const unsigned long types[] = {0x9fa0, 0x62656572, 0x27e0eb, 0x63677270, 0x19800202};
  struct statfs system;
  if (fstatfs(file, &system) < 0) return 1;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if ((unsigned long)system.f_type == types[i]) return 1;
  return 0;
}

/* Reads at most so many bytes. Returns how many there were, or -1. */
static ssize_t take(int from, size_t most) {
  size_t length = 0;
  while (length < most) {
    ssize_t more = read(from, content + length, most - length);
    if (more < 0) return -1;
    if (more == 0) break;
    length += more;
  }
  return length;
}

/* Whether a pipe that is empty takes a line and so many bytes, which begin in a page of their own. */
static int has_room(int pipe, off_t bytes) {
  return bytes + sysconf(_SC_PAGESIZE) <= fcntl(pipe, F_GETPIPE_SZ);
}

/* Exactly as many bytes as the file has when it is opened. The kernel hands on what it holds of the file, without a copy. */
static int send_file(const char *path, int to, void (*begin)(void)) {
  struct stat file;
  if (stat(path, &file) < 0) return errno == ENOENT || errno == ENOTDIR ? NOT_FOUND : LEFT;
  if (S_ISDIR(file.st_mode)) return IS_DIRECTORY;
  if (!S_ISREG(file.st_mode)) return NOT_A_FILE;
  /* Waits for nobody, should it have become a named pipe meanwhile. */
  int from = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (from < 0 || fstat(from, &file) < 0) return LEFT;
  if (!S_ISREG(file.st_mode) || is_made_up(from)) return LEFT;
  if (!has_room(to, file.st_size)) begin();
  if (dprintf(to, "%lld\n", (long long)file.st_size) < 0) return CUT;
  for (off_t left = file.st_size; left > 0;) {
    ssize_t more = sendfile(to, from, NULL, left);
    if (more <= 0) return CUT;
    left -= more;
  }
  return DONE;
}

/* Makes the folder of so many bytes of the path, and those above it. */
static int make_folders(char *path, int length) {
  for (int at = 1; at <= length; at++) {
    char next = path[at];
    if (at < length && next != '/') continue;
    path[at] = 0;
    int is_there = mkdir(path, 0777) == 0 || errno == EEXIST;
    path[at] = next;
    if (!is_there) return 0;
  }
  return 1;
}

/* Opens a new file, which is only for this user until it has its mode. */
static int make_file(const char *path) {
  return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Gives the content to a new file. It has the group of this process, and not that of its folder. */
static int fill_file(int file, size_t length, mode_t mode) {
  struct stat made;
  for (size_t written = 0; written < length;) {
    ssize_t more = write(file, content + written, length - written);
    if (more <= 0) return 0;
    written += more;
  }
  if (fstat(file, &made) < 0 || (made.st_gid != getegid() && fchown(file, -1, getegid()) < 0)) return 0;
  return fchmod(file, mode) == 0;
}

static int replace_file(char *path, const char *name, const char *mode, int from) {
  char beside[PATH_BYTES];
  struct stat there;
  if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) return S_ISDIR(there.st_mode) ? IS_DIRECTORY : EXISTS;
  char *slash = strrchr(path, '/');
  ssize_t length = take(from, FILE_BYTES);
  if (!slash || length < 0) return LEFT;
  int folder = slash - path;
  if (snprintf(beside, sizeof beside, "%.*s/%s", folder, path, name) >= (int)sizeof beside) return LEFT;
  int to = make_file(beside);
  if (to < 0 && errno == ENOENT && make_folders(path, folder)) to = make_file(beside);
  if (to < 0) return LEFT;
  int is_whole = fill_file(to, length, strtoul(mode, NULL, 8) & 07777);
  if (close(to) == 0 && is_whole && rename(beside, path) == 0) return DONE;
  unlink(beside);
  return LEFT;
}

int work_on_file(char *const *arguments, int count, const int *streams, void (*begin)(void)) {
  if (count == 2 && strcmp(arguments[0], "send") == 0) return send_file(arguments[1], streams[STDOUT_FILENO], begin);
  if (count == 4 && strcmp(arguments[0], "write") == 0) return replace_file(arguments[1], arguments[2], arguments[3], streams[STDIN_FILENO]);
  return LEFT;
}
