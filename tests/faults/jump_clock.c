/* Loaded before libc: the wall clock of the process is off by the seconds that stand in the file EDGE_ROAD_JUMP.
   Waits until a moment of the wall clock (sem_timedwait of Python 3.10) see the same clock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
  char text[32] = {0};
  const char *path = getenv("EDGE_ROAD_JUMP");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return 0;
  ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  return size > 0 ? atol(text) : 0;
}

#define REAL(type, name, parameters)                                   \
  static type(*real) parameters;                                       \
  if (!real) real = (type(*) parameters)dlsym(RTLD_NEXT, #name)

int clock_gettime(clockid_t clock, struct timespec *now) {
  REAL(int, clock_gettime, (clockid_t, struct timespec *));
  int failed = real(clock, now);
  if (!failed && clock == CLOCK_REALTIME) now->tv_sec += offset();
  return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
  REAL(int, gettimeofday, (struct timeval *, void *));
  int failed = real(now, zone);
  if (!failed) now->tv_sec += offset();
  return failed;
}

time_t time(time_t *where) {
  REAL(time_t, time, (time_t *));
  time_t now = real(NULL) + offset();
  if (where) *where = now;
  return now;
}

int sem_timedwait(sem_t *semaphore, const struct timespec *until) {
  REAL(int, sem_timedwait, (sem_t *, const struct timespec *));
  struct timespec true_until = {until->tv_sec - offset(), until->tv_nsec};
  return real(semaphore, &true_until);
}
