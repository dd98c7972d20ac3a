/* A V4L2 camera without a kernel driver: preloaded into a process, it answers for /dev/video77.
 *
 * The folder in EDGE_ROAD_FAKE_V4L2 holds its pictures (0.jpg to 6.jpg) and its faults: a file `gone`
 * unplugs it, `silent` makes it send nothing, `damaged` marks each picture as damaged.
 * The kernel's own header is used, so the layouts that Python packs by hand are checked against it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define DEVICE "/dev/video77"
#define ROOM (1 << 20)
#define PERIOD_NS 50000000LL

static int camera = -1, streaming, queued[4], taken;
static long long due_ns;

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int says(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", getenv("EDGE_ROAD_FAKE_V4L2"), name);
  return access(path, F_OK) == 0;
}

static int fail(int code) {
  errno = code;
  return -1;
}

static int open_camera(void) {
  if (says("gone")) return fail(ENODEV);
  camera = memfd_create("camera", MFD_CLOEXEC);
  if (ftruncate(camera, 4 * ROOM)) return -1;
  memset(queued, 0, sizeof queued);
  streaming = 0;
  return camera;
}

#define OPEN(name)                                                                       \
  int name(const char *path, int flags, ...) {                                           \
    static int (*real)(const char *, int, ...);                                          \
    if (!real) real = dlsym(RTLD_NEXT, #name);                                           \
    va_list rest;                                                                        \
    va_start(rest, flags);                                                               \
    mode_t mode = va_arg(rest, int);                                                     \
    va_end(rest);                                                                        \
    return strcmp(path, DEVICE) ? real(path, flags, mode) : open_camera();               \
  }
OPEN(open)
OPEN(open64)

int close(int fd) {
  static int (*real)(int);
  if (!real) real = dlsym(RTLD_NEXT, "close");
  if (fd == camera) camera = -1;
  return real(fd);
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
  static int (*real)(struct pollfd *, nfds_t, int);
  if (!real) real = dlsym(RTLD_NEXT, "poll");
  if (count != 1 || camera < 0 || fds[0].fd != camera) return real(fds, count, timeout_ms);
  long long wait_ns = says("silent") ? timeout_ms * 1000000LL : due_ns - now_ns();
  int late = wait_ns >= timeout_ms * 1000000LL;
  if (late) wait_ns = timeout_ms * 1000000LL;
  if (wait_ns > 0) nanosleep(&(struct timespec){wait_ns / 1000000000, wait_ns % 1000000000}, NULL);
  fds[0].revents = POLLIN;
  return late ? 0 : 1;
}

static int fill(struct v4l2_buffer *buffer) {
  if (!streaming) return fail(EINVAL);
  if (now_ns() < due_ns || says("silent")) return fail(EAGAIN);
  int index = 0;
  while (index < 4 && !queued[index]) index++;
  if (index == 4) return fail(EAGAIN);
  char path[512];
  static char content[ROOM];
  snprintf(path, sizeof path, "%s/%d.jpg", getenv("EDGE_ROAD_FAKE_V4L2"), taken++ % 7);
  FILE *file = fopen(path, "rb");
  size_t used = file ? fread(content, 1, ROOM, file) : 0;
  if (file) fclose(file);
  if (pwrite(camera, content, used, (off_t)index * ROOM) < 0) return -1;
  long long at_ns = now_ns();
  due_ns = due_ns + PERIOD_NS > at_ns ? due_ns + PERIOD_NS : at_ns + PERIOD_NS;
  queued[index] = 0;
  buffer->index = index;
  buffer->bytesused = used;
  buffer->flags = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC | (says("damaged") ? V4L2_BUF_FLAG_ERROR : 0);
  buffer->timestamp.tv_sec = at_ns / 1000000000;
  buffer->timestamp.tv_usec = at_ns % 1000000000 / 1000;
  buffer->sequence = taken;
  return 0;
}

int ioctl(int fd, unsigned long request, ...) {
  static int (*real)(int, unsigned long, ...);
  if (!real) real = dlsym(RTLD_NEXT, "ioctl");
  va_list rest;
  va_start(rest, request);
  void *argument = va_arg(rest, void *);
  va_end(rest);
  if (camera < 0 || fd != camera) return real(fd, request, argument);
  if (says("gone")) return fail(ENODEV);
  struct v4l2_capability *capability = argument;
  struct v4l2_format *format = argument;
  struct v4l2_requestbuffers *wanted = argument;
  struct v4l2_streamparm *rate = argument;
  struct v4l2_buffer *buffer = argument;
  switch ((unsigned)request) {
    case VIDIOC_QUERYCAP:
      capability->capabilities = V4L2_CAP_DEVICE_CAPS | V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
      capability->device_caps = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
      return 0;
    case VIDIOC_S_FMT:
      if (format->type != V4L2_BUF_TYPE_VIDEO_CAPTURE) return fail(EINVAL);
      format->fmt.pix.width = 128;
      format->fmt.pix.height = 96;
      format->fmt.pix.pixelformat = V4L2_PIX_FMT_MJPEG;
      return 0;
    case VIDIOC_S_PARM:
      rate->parm.capture.timeperframe.numerator = 1;
      rate->parm.capture.timeperframe.denominator = 20;
      return 0;
    case VIDIOC_REQBUFS:
      if (wanted->memory != V4L2_MEMORY_MMAP) return fail(EINVAL);
      wanted->count = 4;
      return 0;
    case VIDIOC_QUERYBUF:
      buffer->length = ROOM;
      buffer->m.offset = buffer->index * ROOM;
      return 0;
    case VIDIOC_QBUF:
      queued[buffer->index] = 1;
      return 0;
    case VIDIOC_DQBUF:
      return fill(buffer);
    case VIDIOC_STREAMON:
      streaming = 1;
      due_ns = now_ns() + PERIOD_NS;
      return 0;
    case VIDIOC_STREAMOFF:
      streaming = 0;
      return 0;
  }
  return fail(ENOTTY);
}
