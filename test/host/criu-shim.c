/*
 * Stands between CRIU and the kernel of the machine that runs the tests, for what that lacks and a usual machine has: root may set
 * the limits of other processes there (CAP_SYS_RESOURCE), and answers what options a socket has that it cannot have (Linux before
 * 6.16, or a newer CRIU).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const limits[] = {
    "Max cpu time",      "Max file size",     "Max data size",       "Max stack size",     "Max core file size", "Max resident set",
    "Max processes",     "Max open files",    "Max locked memory",   "Max address space",  "Max file locks",     "Max pending signals",
    "Max msgqueue size", "Max nice priority", "Max realtime priority", "Max realtime timeout",
};

static unsigned long value(const char *text) {
  return strncmp(text, "unlimited", 9) == 0 ? ~0UL : strtoul(text, NULL, 10);
}

/* The limits of another process as everybody may read them. */
static int read_limit(int pid, int which, unsigned long *both) {
  char path[64], line[256], soft[64], hard[64];
  snprintf(path, sizeof path, "/proc/%d/limits", pid);
  FILE *file = fopen(path, "r");
  int found = 0;
  while (file && !found && fgets(line, sizeof line, file)) {
    if (strncmp(line, limits[which], strlen(limits[which])) != 0 || sscanf(line + 26, "%63s %63s", soft, hard) != 2) continue;
    both[0] = value(soft);
    both[1] = value(hard);
    found = 1;
  }
  if (file) fclose(file);
  return found;
}

long syscall(long number, ...) {
  long (*call)(long, ...) = dlsym(RTLD_NEXT, "syscall");
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (int i = 0; i < 6; i++) arguments[i] = va_arg(list, long);
  va_end(list);
  long result = call(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
  int reads_other = number == SYS_prlimit64 && arguments[0] != 0 && arguments[2] == 0 && arguments[3] != 0;
  if (result < 0 && errno == EPERM && reads_other && read_limit(arguments[0], arguments[1], (unsigned long *)arguments[3])) return 0;
  return result;
}

static int is_foreign_option(int level, int name) {
  return errno == EOPNOTSUPP && level == SOL_SOCKET && (name == SO_PASSCRED || name == SO_PASSSEC);
}

int getsockopt(int fd, int level, int name, void *option, socklen_t *length) {
  int (*call)(int, int, int, void *, socklen_t *) = dlsym(RTLD_NEXT, "getsockopt");
  int result = call(fd, level, name, option, length);
  if (result == 0 || !is_foreign_option(level, name)) return result;
  memset(option, 0, *length);
  return 0;
}

int setsockopt(int fd, int level, int name, const void *option, socklen_t length) {
  int (*call)(int, int, int, const void *, socklen_t) = dlsym(RTLD_NEXT, "setsockopt");
  int result = call(fd, level, name, option, length);
  return result < 0 && is_foreign_option(level, name) ? 0 : result;
}
