// io_submit(2) and its kin without libaio.
#ifndef AIO_CALLS_H
#define AIO_CALLS_H

#include <linux/aio_abi.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// What a context's address shows (fs/aio.c).
struct aio_ring {
    unsigned id, nr, head, tail, magic, compat_features, incompat_features, header_length;
    struct io_event events[];
};
enum { AIO_RING_MAGIC = 0xa10a10a1 };

static inline int io_setup(unsigned count, aio_context_t *context) {
    return syscall(SYS_io_setup, count, context);
}

static inline int io_destroy(aio_context_t context) { return syscall(SYS_io_destroy, context); }

static inline long io_submit(aio_context_t context, long count, struct iocb **blocks) {
    return syscall(SYS_io_submit, context, count, blocks);
}

static inline long io_getevents(aio_context_t context, long least, long most, struct io_event *events,
                                struct timespec *limit) {
    return syscall(SYS_io_getevents, context, least, most, events, limit);
}

static inline struct iocb block(int kind, int fd, void *buffer, uint64_t bytes, int64_t offset) {
    return (struct iocb){
        .aio_lio_opcode = kind,
        .aio_fildes = fd,
        .aio_buf = (uintptr_t)buffer,
        .aio_nbytes = bytes,
        .aio_offset = offset,
        .aio_data = 77,
    };
}

static inline long submit_one(aio_context_t context, struct iocb *one) { return io_submit(context, 1, &one); }

// Submits one and waits for it: its result, or the refusal as a negative number.
static inline long whole(aio_context_t context, struct iocb *one) {
    struct io_event event;
    if (submit_one(context, one) != 1) return -1000 - errno;
    if (io_getevents(context, 1, 1, &event, NULL) != 1) return -2000 - errno;
    return event.data == 77 && event.obj == (uintptr_t)one ? event.res : -3000;
}

#endif
