/* What a disk and a clock can do wrong, for processes that preload this.

   faults_arm(folder, allowed, number): below a folder, let so many changes happen, and refuse all
   that follow with an error number; links are refused alone where that is EPERM.
   FAULTS_CLOCK in the environment names a file with seconds that are added to the system clock. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static char folder[4096];
static long allowed, counted;
static int number;

void faults_arm(const char *path, long changes, int error) {
    snprintf(folder, sizeof folder, "%s", path);
    allowed = changes;
    number = error;
    counted = 0;
}

long faults_counted(void) { return counted; }

static int below(const char *path) {
    size_t length = strlen(folder);
    return length && path && !strncmp(path, folder, length);
}

static int refused(const char *path, int is_link) {
    if (!below(path) || (number == EPERM) != is_link || ++counted <= allowed) return 0;
    errno = number;
    return 1;
}

static int refused_file(int descriptor) {
    char link[64], path[4096];
    if (!*folder) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    long length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return refused(path, 0);
}

#define REAL(name)                                                             \
    ({                                                                         \
        static __typeof__(name) *real;                                         \
        if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);         \
        real;                                                                  \
    })

#define OPEN(name)                                                             \
    int name(const char *path, int flags, ...) {                               \
        va_list rest;                                                          \
        va_start(rest, flags);                                                 \
        mode_t mode = va_arg(rest, mode_t);                                    \
        va_end(rest);                                                          \
        int changes = flags & O_CREAT || (number == EROFS && flags & O_ACCMODE); \
        return changes && refused(path, 0) ? -1 : REAL(name)(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

int mkdir(const char *path, mode_t mode) {
    return refused(path, 0) ? -1 : REAL(mkdir)(path, mode);
}
int rename(const char *from, const char *to) {
    return refused(to, 0) ? -1 : REAL(rename)(from, to);
}
int link(const char *from, const char *to) {
    return refused(to, 1) ? -1 : REAL(link)(from, to);
}
int symlink(const char *from, const char *to) {
    return refused(to, 1) ? -1 : REAL(symlink)(from, to);
}
ssize_t write(int file, const void *data, size_t size) {
    return refused_file(file) ? -1 : REAL(write)(file, data, size);
}
ssize_t pwrite64(int file, const void *data, size_t size, off64_t place) {
    return refused_file(file) ? -1 : REAL(pwrite64)(file, data, size, place);
}
size_t fwrite(const void *data, size_t size, size_t count, FILE *file) {
    return refused_file(fileno(file)) ? 0 : REAL(fwrite)(data, size, count, file);
}
int posix_fallocate64(int file, off64_t start, off64_t size) {
    return refused_file(file) ? number : REAL(posix_fallocate64)(file, start, size);
}

static int real_time(clockid_t clock, struct timespec *now) {
    return REAL(clock_gettime)(clock, now);
}

/* Libraries that wait actively ask for the time all the time; the file is read 20 times a second. */
static long shift_s(void) {
    static int file = -2;
    static long shift, read_at = -1;
    struct timespec now;
    char text[32] = "";
    real_time(CLOCK_MONOTONIC, &now);
    long tick = now.tv_sec * 20 + now.tv_nsec / 50000000;
    if (tick == read_at) return shift;
    read_at = tick;
    if (file == -2) {
        const char *path = getenv("FAULTS_CLOCK");
        file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
    }
    if (file < 0 || syscall(SYS_pread64, file, text, sizeof text - 1, 0) < 0) return 0;
    return shift = atol(text);
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int code = real_time(clock, now);
    if (!code && clock == CLOCK_REALTIME) now->tv_sec += shift_s();
    return code;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int code = REAL(gettimeofday)(now, zone);
    if (!code) now->tv_sec += shift_s();
    return code;
}
time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}
