/*
 * Run by the worker, outside of sandboxes: gives a container that was started without files the root that is mounted for it. In the
 * container's mount namespace, the root takes the place of the empty one, or of the one it was given before, for all processes at once, and
 * what the OCI runtime has mounted in there moves over: /proc, /dev and so on. All of it is done with the rights of the container's own root and seen from its
 * new root, so that a link in an image leads nowhere else.
 *
 * Arguments: the container's first process, the number of its PID namespace, the root, and what to move, none of it below another one.
 * Writes the ids of the superuser's further groups in that root.
 */
#define _GNU_SOURCE
#include "root.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOUNTS_MAX = 64, LINKS_MAX = 8, USERS_BYTES_MAX = 1 << 18 };
enum { CLONE_TREE = 1, EMPTY_PATH = 4, FOLLOW_TO = 16 };

static int failed(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  return 1;
}

static ino_t namespace_of(const char *process, const char *kind) {
  char path[64];
  struct stat found;
  snprintf(path, sizeof path, "/proc/%s/ns/%s", process, kind);
  return stat(path, &found) == 0 ? found.st_ino : 0;
}

/* Enters the namespaces of a process, as their root. */
static int enter(const char *process, const char *pid_namespace) {
  int has_own_ids = namespace_of(process, "user") != namespace_of("self", "user");
  int opened = syscall(SYS_pidfd_open, atoi(process), 0);
  /* Looked at only now, so that the process is still this one. */
  if (opened < 0 || namespace_of(process, "pid") != strtoul(pid_namespace, NULL, 10)) return -1;
  if (syscall(SYS_setns, opened, CLONE_NEWNS | (has_own_ids ? CLONE_NEWUSER : 0)) < 0) return -1;
  return has_own_ids && (setgroups(0, NULL) < 0 || setgid(0) < 0 || setuid(0) < 0) ? -1 : 0;
}

/* Makes the folders above a path. */
static void make_above(char *path) {
  for (char *at = path + 1; (at = strchr(at, '/')); at++) {
    *at = 0;
    mkdir(path, 0755);
    *at = '/';
  }
}

/* Makes an empty file, also where a link leads to whose target is not there. */
static void make_file(const char *wanted) {
  char path[4096], target[4096];
  snprintf(path, sizeof path, "%s", wanted);
  for (int links = 0; links < LINKS_MAX; links++) {
    make_above(path);
    int made = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
    if (made >= 0) {
      close(made);
      return;
    }
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0) return;
    target[length] = 0;
    int above = target[0] == '/' ? 0 : (int)(strrchr(path, '/') - path + 1);
    if (snprintf(path + above, sizeof path - above, "%s", target) >= (int)sizeof path - above) return;
  }
}

/* Opens a list of users or groups that can be read at once; NULL for anything else. */
static FILE *open_list(const char *path) {
  struct stat found;
  int list = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (list < 0) return NULL;
  if (fstat(list, &found) == 0 && S_ISREG(found.st_mode) && found.st_size <= USERS_BYTES_MAX) return fdopen(list, "r");
  close(list);
  return NULL;
}

/*
 * Writes in which groups the superuser of the root is, for those who start commands: the container's processes are in none. Returns
 * whether that is all in which it differs from the superuser of the empty root, as whom they run. Reads files of the sandbox, which
 * are not to be trusted, with its own rights.
 */
static int tell_groups(void) {
  FILE *users = open_list("/etc/passwd"), *groups = open_list("/etc/group");
  if (!users || !groups) return 0;
  struct passwd *user;
  while ((user = fgetpwent(users)) && user->pw_uid != 0);
  if (!user || strcmp(user->pw_dir, "/root") != 0) return 0;
  int found = 0;
  for (struct group *group; (group = fgetgrent(groups));)
    for (char **member = group->gr_mem; *member; member++) {
      if (strcmp(*member, user->pw_name) != 0) continue;
      if (++found > GROUPS_MAX) return 0;
      printf("%u ", group->gr_gid);
      break;
    }
  return 1;
}

/*
 * Has what is mounted somewhere else be at its place in the root, which is this process's own. A link may lead to the place of a file,
 * as it often does with /etc/resolv.conf; where one is in the place of a folder, such as /proc, the OCI runtime is to decide.
 */
static int take_over(int mounted, char *place) {
  struct stat found;
  if (fstat(mounted, &found) < 0) return -1;
  int is_folder = S_ISDIR(found.st_mode);
  make_above(place);
  if (is_folder) mkdir(place, 0755);
  else make_file(place);
  return syscall(SYS_move_mount, mounted, "", AT_FDCWD, place, EMPTY_PATH | (is_folder ? 0 : FOLLOW_TO));
}

int enter_root(int count, char **arguments) {
  int mounts[MOUNTS_MAX];
  if (count < 3 || count > 3 + MOUNTS_MAX) return errno = EINVAL, failed("arguments");
  int root = syscall(SYS_open_tree, AT_FDCWD, arguments[2], CLONE_TREE | O_CLOEXEC);
  if (root < 0) return failed(arguments[2]);
  if (enter(arguments[0], arguments[1]) < 0) return failed("the container's namespaces");
  int empty = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (int i = 3; i < count; i++) {
    mounts[i - 3] = syscall(SYS_open_tree, AT_FDCWD, arguments[i], O_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    if (mounts[i - 3] < 0) return failed(arguments[i]);
  }
  if (empty < 0 || syscall(SYS_move_mount, root, "", AT_FDCWD, "/", EMPTY_PATH) < 0) return failed("attaching the root");
  /* Now that nothing is mounted over it, and a path from above leads nowhere else. */
  if (fchdir(root) < 0 || chroot(".") < 0) return failed("entering the root");
  if (!tell_groups()) return fprintf(stderr, "the superuser in there has another home, or too many groups\n"), 1;
  umask(0022);
  /* As Podman does, unless there is one. */
  symlink("/proc/mounts", "/etc/mtab");
  for (int i = 3; i < count; i++)
    if (take_over(mounts[i - 3], arguments[i]) < 0) return failed(arguments[i]);
  if (fchdir(empty) < 0 || chroot(".") < 0 || fchdir(root) < 0) return failed("leaving the root");
  /* For all processes in there. The empty root is at the same place then, and above it. */
  if (syscall(SYS_pivot_root, ".", ".") < 0) return failed("pivot_root");
  return umount2(".", MNT_DETACH) < 0 ? failed("unmounting the empty root") : 0;
}
