/* Loaded before libc: the process kills itself instead of its n-th write, sync, truncation, unlink or rename. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

int kill_at = 0; /* 0: never */
int calls = 0;

static void count(void) {
  calls++;
  if (kill_at > 0 && --kill_at == 0) kill(getpid(), SIGKILL);
}

#define HURT(type, name, parameters, arguments)                  \
  type name parameters {                                         \
    static type(*real) parameters;                               \
    if (!real) real = (type(*) parameters)dlsym(RTLD_NEXT, #name); \
    count();                                                     \
    return real arguments;                                       \
  }

HURT(ssize_t, write, (int fd, const void *bytes, size_t size), (fd, bytes, size))
HURT(ssize_t, pwrite, (int fd, const void *bytes, size_t size, off_t at), (fd, bytes, size, at))
HURT(ssize_t, pwrite64, (int fd, const void *bytes, size_t size, off64_t at), (fd, bytes, size, at))
HURT(int, fsync, (int fd), (fd))
HURT(int, fdatasync, (int fd), (fd))
HURT(int, ftruncate, (int fd, off_t size), (fd, size))
HURT(int, ftruncate64, (int fd, off64_t size), (fd, size))
HURT(int, unlink, (const char *path), (path))
HURT(int, rename, (const char *from, const char *to), (from, to))
