/*
 * The network in a program: a TCP/IP stack over a link whose frames the program moves itself.
 * Link with -lsietch-io.
 *
 *	struct sietch_config config = { .link = "vnic0", .address = "10.0.2.61/24" };
 *	struct sietch_queue *queue;
 *	struct sietch_socket socket;
 *	struct sietch_event event;
 *
 *	if (sietch_queue_open(&config, &queue) < 0)
 *		errx(1, "%s", sietch_open_error());
 *	sietch_bind(queue, 7, &socket);
 *	while (sietch_poll(queue, -1) == 0)
 *		while (sietch_receive(queue, &event) == 1)
 *			if (event.kind == SIETCH_DATAGRAM)
 *				sietch_send_to(queue, event.socket, &event.from, event.data);
 *
 * A queue is a link with its frames and a stack: a VNIC of Sietch's by its name, a card of the program's own
 * by its place on the bus. It belongs to one thread at a time, and not to the children of a fork.
 *
 * Whose is what
 *	Data that was received lies where the card wrote it. It is the program's until sietch_done(), or until
 *	it is given to a call that sends it, without a copy. A program that keeps it runs out of packet memory;
 *	then its own link loses frames. What was sent comes home by itself.
 *
 * Names
 *	Sockets, listeners, connections and data are numbers in structs, so that none is taken for another: names
 *	of one queue. Zero is none. A name that is dead is refused with -EBADF.
 *	A queue is a pointer: after sietch_queue_close() it must not be used.
 *
 * Results
 *	Zero, or what the call says, is success; failure is one of these numbers of errno(3), negative. errno
 *	itself is not used.
 *
 *	-EINVAL         a pointer is NULL that must not be, an argument cannot be, or not in this state
 *	-EBADF          the name is dead, or none
 *	-EAGAIN         no room to send: SIETCH_SENDABLE follows
 *	-ENOBUFS        a limit on sockets or on packet memory is reached
 *	-EMSGSIZE       the datagram is larger than the network takes, or than there is room in the buffer
 *	-EAFNOSUPPORT   the address is not of IPv4
 *	-EADDRINUSE, -EADDRNOTAVAIL   the port is taken; none is free
 *	-ENETUNREACH, -EHOSTUNREACH, -EHOSTDOWN   no way there; nobody answers there
 *	-ECONNREFUSED, -ECONNRESET, -ECONNABORTED, -ETIMEDOUT   the peer refused, reset, left, is silent
 *	-ENOTCONN, -EPIPE   not connected; sending is over
 *	-ENOPROTOOPT, -EPROTO, -EACCES   what the network said of what was sent
 *	-ENETDOWN       the link is gone
 *
 *	Opening, polling and arming fail with the system's numbers, too.
 */
#ifndef SIETCH_IO_H
#define SIETCH_IO_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A link, its frames and a stack. */
struct sietch_queue;

/* Receives datagrams to a port. */
struct sietch_socket {
	uint64_t id;
};

/* Peers connect to it. */
struct sietch_listener {
	uint64_t id;
};

/* A stream. */
struct sietch_connection {
	uint64_t id;
};

/* Bytes in packet memory; zero has none. A buffer is data that the program still writes. */
struct sietch_data {
	uint64_t id;
};

/* A queue to be opened. What is zero is chosen for it. */
struct sietch_config {
	const char *link;      /* "vnic0", or a card: "0000:00:08.0" */
	const char *address;   /* the program's, with its network: "10.0.2.61/24" */
	const char *gateway;   /* the way to other networks: "10.0.2.2"; NULL for none */
	uint32_t ring_entries; /* frames that wait each way: a power of two; 512 */
	uint32_t chunks;       /* of packet memory, 2 KiB each: even; 4096. They are pinned */
	uint32_t sockets_max;  /* 16384 */
	uint32_t reserved[5];  /* zero */
};

/* What can happen. */
enum sietch_kind {
	SIETCH_DATAGRAM = 1,    /* socket, from, data: a datagram came */
	SIETCH_UNDELIVERED = 2, /* socket, error: one sent before did not arrive, somebody on the way says */
	SIETCH_ACCEPTED = 3,    /* listener, connection: a peer has connected */
	SIETCH_CONNECTED = 4,   /* connection: the peer that we asked has answered */
	SIETCH_RECEIVED = 5,    /* connection, data: the next bytes of its stream, one at least */
	SIETCH_SENDABLE = 6,    /* connection: after a send that did not take all, there is room */
	SIETCH_ENDED = 7,       /* connection: the peer has sent its last byte; we may still send */
	SIETCH_LOST = 8         /* connection, error: it is gone, and its name dead */
};

/* Something happened, and here is the data that came with it. What the kind does not name is zero. */
struct sietch_event {
	uint32_t kind; /* of enum sietch_kind; a program passes over those that it does not know */
	int32_t error; /* a negative number of errno(3) */
	struct sietch_socket socket;
	struct sietch_listener listener;
	struct sietch_connection connection;
	struct sietch_data data; /* the program's from now on */
	struct sockaddr_in from;
	uint64_t reserved;
};

/* How often something happened since the queue was opened. */
struct sietch_counter {
	uint64_t value;
	char name[56]; /* "frames.received" */
};

/* ---- the queue ---- */

/*
 * Takes a link. While the queue is open all of its frames are the program's; the kernel's stack has it back
 * afterwards, however the program ends. Fails with the system's numbers: -ENODEV (no such link), -EBUSY
 * (somebody has it), -EPERM (CAP_NET_RAW is needed), -ENOBUFS or -ENOMEM (RLIMIT_MEMLOCK), -EINVAL for a
 * configuration that cannot be, -EOPNOTSUPP for a device without a driver here.
 */
int sietch_queue_open(const struct sietch_config *config, struct sietch_queue **queue);

/* Why the last sietch_queue_open() of this thread failed, as a sentence; valid until its next one. */
const char *sietch_open_error(void);

/* Gives the link back. All names of the queue are dead, and its data is gone. NULL is no queue to close. */
void sietch_queue_close(struct sietch_queue *queue);

/*
 * Sends what was staged since the last call, and receives until sietch_receive() has something, for at most
 * so many milliseconds; negative waits for ever. It may return without. A signal does not end the wait:
 * who needs that waits by sietch_arm().
 */
int sietch_poll(struct sietch_queue *queue, int timeout_ms);

/* The next thing that happened: 1 with an event, 0 when it is time to poll. */
int sietch_receive(struct sietch_queue *queue, struct sietch_event *event);

/*
 * A descriptor for poll(2) and epoll(7), readable (POLLIN) when frames have come. It is the queue's: not to be read
 * or closed.
 */
int sietch_queue_fd(struct sietch_queue *queue);

/*
 * Gets ready to wait for the descriptor: sends what was staged, and says for how many milliseconds to wait at
 * most, -1 for ever, 0 if there is something to do. Afterwards sietch_poll(queue, 0), whatever ended the wait.
 */
int sietch_arm(struct sietch_queue *queue, int *timeout_ms);

/*
 * The counter at a place: 1 with a counter, 0 behind the last. Frames, drops with their reasons, what the stack did,
 * what the card's driver counted.
 */
int sietch_counter_at(struct sietch_queue *queue, size_t place, struct sietch_counter *counter);

/* ---- sockets ---- */

/* Receives datagrams to a port, in the host's order of bytes; zero picks one. */
int sietch_bind(struct sietch_queue *queue, uint16_t port, struct sietch_socket *socket);

/* Receives no more of them. */
int sietch_unbind(struct sietch_queue *queue, struct sietch_socket socket);

/* Lets peers connect to a port; `backlog` of them wait until they are received. */
int sietch_listen(struct sietch_queue *queue, uint16_t port, int backlog,
		  struct sietch_listener *listener);

/* Lets no more connect. */
int sietch_stop_listening(struct sietch_queue *queue, struct sietch_listener listener);

/* Asks a peer; SIETCH_CONNECTED or SIETCH_LOST follows. */
int sietch_connect(struct sietch_queue *queue, const struct sockaddr_in *to,
		   struct sietch_connection *connection);

/* Lets a connection go: what was sent still reaches the peer. Its name is dead. */
int sietch_close(struct sietch_queue *queue, struct sietch_connection connection);

/* A small number that no other connection of the queue has while this one lives: for a program's own tables. */
size_t sietch_connection_index(struct sietch_connection connection);

/* ---- sending ---- */

/* Sends a datagram, not copied if it is in one piece. The data is gone, whatever this returns. */
int sietch_send_to(struct sietch_queue *queue, struct sietch_socket socket,
		   const struct sockaddr_in *to, struct sietch_data data);

/* Sends a datagram of bytes that are copied. */
int sietch_send_bytes_to(struct sietch_queue *queue, struct sietch_socket socket,
			 const struct sockaddr_in *to, const void *bytes, size_t len);

/*
 * Sends what there is room for, not copied, and returns how many bytes that were. What is left is still in the
 * data, and the program's: `left` bytes, if that is not NULL; SIETCH_SENDABLE follows. If all was sent the data is
 * gone. A call that fails takes nothing.
 */
ssize_t sietch_send(struct sietch_queue *queue, struct sietch_connection connection,
		    struct sietch_data data, size_t *left);

/* Sends what there is room for of bytes that are copied, and returns how many. */
ssize_t sietch_send_bytes(struct sietch_queue *queue, struct sietch_connection connection,
			  const void *bytes, size_t len);

/* ---- data ---- */

/* The data is not needed any more. */
int sietch_done(struct sietch_queue *queue, struct sietch_data data);

/* How many bytes it has. */
ssize_t sietch_data_len(struct sietch_queue *queue, struct sietch_data data);

/*
 * How many pieces it lies in; the first `max` of them are described. They are to be read only, until the
 * data is done, sent, or written to.
 */
ssize_t sietch_data_parts(struct sietch_queue *queue, struct sietch_data data,
			  struct iovec *parts, size_t max);

/* Copies from it, from byte `offset` on; returns how many bytes there were, `len` at most. */
ssize_t sietch_data_copy(struct sietch_queue *queue, struct sietch_data data, size_t offset,
			 void *to, size_t len);

/* An empty buffer of packet memory, more than 1400 bytes large. -ENOBUFS while memory is scarce. */
int sietch_buffer(struct sietch_queue *queue, struct sietch_data *buffer);

/*
 * Where the program may write, behind what it has committed. -EINVAL for data that was received, or that
 * sietch_send() was called with.
 */
int sietch_buffer_space(struct sietch_queue *queue, struct sietch_data buffer, struct iovec *space);

/* Adds the next `len` bytes, which the program has written there, to the buffer's data. */
int sietch_buffer_commit(struct sietch_queue *queue, struct sietch_data buffer, size_t len);

#ifdef __cplusplus
}
#endif

#endif
