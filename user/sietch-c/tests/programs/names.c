/*
 * Names that are dead, of another kind, or none, on a queue that is real:
 *
 *	names vnic0 10.0.2.61/24
 *
 * Says "fine", or what was not refused.
 */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <sietch-io.h>

static int failures;

#define IS(expected, call)                                              \
	do {                                                            \
		long got = (long)(call);                                \
		if (got != (expected)) {                                \
			printf("%s: %ld\n", #call, got);                \
			failures++;                                     \
		}                                                       \
	} while (0)

static struct sietch_queue *queue;
static struct sockaddr_in to;

static void buffers(void)
{
	struct sietch_data buffer, other, none = { 0 };
	struct iovec space, part;
	char copy[8];

	IS(0, sietch_buffer(queue, &buffer));
	IS(0, sietch_buffer_space(queue, buffer, &space));
	IS(1, space.iov_len > 1400);
	IS(0, sietch_data_parts(queue, buffer, NULL, 0));
	memcpy(space.iov_base, "abcdef", 6);
	IS(0, sietch_buffer_commit(queue, buffer, 4));
	IS(0, sietch_buffer_commit(queue, buffer, 2));
	IS(-EMSGSIZE, sietch_buffer_commit(queue, buffer, space.iov_len));
	IS(-EMSGSIZE, sietch_buffer_commit(queue, buffer, (size_t)-1));
	IS(6, sietch_data_len(queue, buffer));
	IS(1, sietch_data_parts(queue, buffer, &part, 1));
	IS(6, part.iov_len);
	IS(-EINVAL, sietch_data_parts(queue, buffer, NULL, 1));
	IS(4, sietch_data_copy(queue, buffer, 2, copy, sizeof copy));
	IS(0, memcmp(copy, "cdef", 4));
	IS(3, sietch_data_copy(queue, buffer, 0, copy, 3));
	IS(0, sietch_data_copy(queue, buffer, 7, copy, sizeof copy));
	IS(0, sietch_data_copy(queue, buffer, (size_t)-1, copy, sizeof copy));
	IS(-EINVAL, sietch_data_copy(queue, buffer, 0, NULL, 1));
	IS(-EINVAL, sietch_data_copy(queue, buffer, 0, copy, (size_t)-1));
	IS(0, sietch_done(queue, buffer));

	/* Its place is another's now. */
	IS(0, sietch_buffer(queue, &other));
	IS(-EBADF, sietch_done(queue, buffer));
	IS(-EBADF, sietch_data_len(queue, buffer));
	IS(-EBADF, sietch_data_parts(queue, buffer, &part, 1));
	IS(-EBADF, sietch_buffer_space(queue, buffer, &space));
	IS(-EBADF, sietch_buffer_commit(queue, buffer, 1));
	IS(0, sietch_done(queue, other));

	IS(0, sietch_data_len(queue, none));
	IS(0, sietch_data_parts(queue, none, &part, 1));
	IS(0, sietch_done(queue, none));
	IS(-EBADF, sietch_buffer_space(queue, none, &space));
	for (uint64_t id = 1; id; id <<= 1) {
		struct sietch_data guess = { id };
		IS(-EBADF, sietch_done(queue, guess));
	}
}

static void sockets(void)
{
	struct sietch_socket socket, other, none = { 0 };
	struct sietch_listener listener, taken;
	struct sietch_connection connection;
	struct sietch_data data;

	IS(0, sietch_bind(queue, 7, &socket));
	IS(-EADDRINUSE, sietch_bind(queue, 7, &other));
	IS(-EINVAL, sietch_bind(queue, 8, NULL));
	IS(0, sietch_listen(queue, 7, -1, &listener));
	IS(-EADDRINUSE, sietch_listen(queue, 7, 1, &taken));
	IS(0, sietch_connect(queue, &to, &connection));
	IS(-EINVAL, sietch_connect(queue, NULL, &connection));

	/* Of another kind. */
	IS(-EBADF, sietch_close(queue, (struct sietch_connection){ socket.id }));
	IS(-EBADF, sietch_close(queue, (struct sietch_connection){ listener.id }));
	IS(-EBADF, sietch_unbind(queue, (struct sietch_socket){ connection.id }));
	IS(-EBADF, sietch_stop_listening(queue, (struct sietch_listener){ connection.id }));
	IS(-EBADF, sietch_unbind(queue, none));

	IS(-EAFNOSUPPORT, sietch_send_bytes_to(queue, socket, &(struct sockaddr_in){ 0 }, "a", 1));
	IS(-EINVAL, sietch_send_bytes_to(queue, socket, NULL, "a", 1));
	IS(-EINVAL, sietch_send_bytes_to(queue, socket, &to, NULL, 1));
	IS(-EINVAL, sietch_send_bytes_to(queue, socket, &to, "a", (size_t)-1));
	IS(-EMSGSIZE, sietch_send_bytes_to(queue, socket, &to, &failures, 65536));
	IS(0, sietch_send_bytes_to(queue, socket, &to, NULL, 0));

	/* Data is gone, whatever became of it. */
	IS(0, sietch_buffer(queue, &data));
	IS(-EBADF, sietch_send_to(queue, none, &to, data));
	IS(-EBADF, sietch_done(queue, data));
	IS(0, sietch_buffer(queue, &data));
	IS(0, sietch_buffer_commit(queue, data, 10));
	IS(0, sietch_send_to(queue, socket, &to, data));
	IS(-EBADF, sietch_send_to(queue, socket, &to, data));

	IS(0, sietch_close(queue, connection));
	IS(-EBADF, sietch_close(queue, connection));
	IS(-EBADF, sietch_send_bytes(queue, connection, "a", 1));
	IS(0, sietch_buffer(queue, &data));
	IS(-EBADF, sietch_send(queue, connection, data, NULL));
	IS(0, sietch_done(queue, data));
	IS(0, sietch_unbind(queue, socket));
	IS(-EBADF, sietch_unbind(queue, socket));
	IS(0, sietch_stop_listening(queue, listener));
	IS(-EBADF, sietch_stop_listening(queue, listener));
}

static void counters(void)
{
	struct sietch_counter counter;
	size_t all = 0;

	while (sietch_counter_at(queue, all, &counter) == 1 && strchr(counter.name, '.'))
		all++;
	IS(1, all > 10);
	IS(0, sietch_counter_at(queue, all, &counter));
	IS(0, sietch_counter_at(queue, (size_t)-1, &counter));
	IS(-EINVAL, sietch_counter_at(queue, 0, NULL));
}

/* More than there are chunks: it ends with a refusal, and then they are there again. */
static void exhaustion(void)
{
	struct sietch_data data[4096];
	int count = 0, again;

	while (count < 4096 && sietch_buffer(queue, &data[count]) == 0)
		count++;
	IS(1, count > 16 && count < 4096);
	for (again = 0; again < count; again++)
		IS(0, sietch_done(queue, data[again]));
	IS(0, sietch_buffer(queue, &data[0]));
	IS(0, sietch_done(queue, data[0]));
}

int main(int argc, char **argv)
{
	struct sietch_config config = { .ring_entries = 64, .chunks = 512 };
	struct sietch_event event;
	int timeout_ms = -2;

	if (argc != 3)
		errx(2, "names LINK ADDRESS/PREFIX");
	config.link = argv[1];
	config.address = argv[2];
	to.sin_family = AF_INET;
	to.sin_port = htons(9);
	to.sin_addr.s_addr = htonl(0x0a000201);
	if (sietch_queue_open(&config, &queue) < 0)
		errx(1, "%s", sietch_open_error());
	buffers();
	sockets();
	counters();
	exhaustion();
	IS(0, sietch_poll(queue, 0));
	IS(-EINVAL, sietch_receive(queue, NULL));
	while (sietch_receive(queue, &event) == 1)
		IS(1, event.kind >= SIETCH_DATAGRAM && event.kind <= SIETCH_LOST);
	IS(-EINVAL, sietch_arm(queue, NULL));
	IS(0, sietch_arm(queue, &timeout_ms));
	IS(1, timeout_ms >= -1);
	IS(1, sietch_queue_fd(queue) > 2);
	sietch_queue_close(queue);

	/* The link is free again. */
	IS(0, sietch_queue_open(&config, &queue));
	sietch_queue_close(queue);
	if (!failures)
		puts("fine");
	return failures != 0;
}
