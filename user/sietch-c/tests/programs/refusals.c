/*
 * Everything that can be asked for wrongly without a queue. Says "fine", or what was not refused.
 */
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

/* Whether it fails so, with a sentence that has these words. */
static void opens(struct sietch_config config, int expected, const char *words)
{
	struct sietch_queue *queue = (struct sietch_queue *)&failures;

	IS(expected, sietch_queue_open(&config, &queue));
	IS(1, queue == NULL);
	if (!strstr(sietch_open_error(), words)) {
		printf("\"%s\" lacks \"%s\"\n", sietch_open_error(), words);
		failures++;
	}
}

static void configurations(void)
{
	struct sietch_config good = { .link = "nolink0", .address = "10.0.2.61/24" }, bad;

	opens(good, -ENODEV, "nolink0: ");
	bad = good, bad.link = NULL;
	opens(bad, -EINVAL, "link");
	bad = good, bad.link = "\xff";
	opens(bad, -EINVAL, "UTF-8");
	bad = good, bad.link = "a name that no interface can have";
	opens(bad, -EINVAL, "a name that");
	bad = good, bad.address = NULL;
	opens(bad, -EINVAL, "address");
	bad = good, bad.address = "10.0.2.61";
	opens(bad, -EINVAL, "10.0.2.61: ");
	bad = good, bad.address = "10.0.2.61/33";
	opens(bad, -EINVAL, "/33");
	bad = good, bad.gateway = "router";
	opens(bad, -EINVAL, "router");
	bad = good, bad.ring_entries = 3;
	opens(bad, -EINVAL, "3 ring_entries");
	bad = good, bad.chunks = 4097;
	opens(bad, -EINVAL, "4097 chunks");
	bad = good, bad.chunks = UINT32_MAX - 1;
	opens(bad, -EINVAL, "chunks");
	bad = good, bad.sockets_max = UINT32_MAX;
	opens(bad, -EINVAL, "sockets");
	bad = good, bad.reserved[4] = 1;
	opens(bad, -EINVAL, "reserved");
}

static void nulls(void)
{
	struct sietch_config config = { 0 };
	struct sietch_queue *queue;
	struct sietch_socket socket = { 0 };
	struct sietch_listener listener = { 0 };
	struct sietch_connection connection = { 0 };
	struct sietch_data data = { 0 };
	struct sietch_event event;
	struct sietch_counter counter;
	struct sockaddr_in to = { 0 };
	struct iovec part;
	size_t left;
	int timeout_ms;
	char bytes[4];

	IS(-EINVAL, sietch_queue_open(NULL, &queue));
	IS(-EINVAL, sietch_queue_open(&config, NULL));
	sietch_queue_close(NULL);
	IS(-EINVAL, sietch_poll(NULL, 0));
	IS(-EINVAL, sietch_receive(NULL, &event));
	IS(-EINVAL, sietch_queue_fd(NULL));
	IS(-EINVAL, sietch_arm(NULL, &timeout_ms));
	IS(-EINVAL, sietch_counter_at(NULL, 0, &counter));
	IS(-EINVAL, sietch_bind(NULL, 7, &socket));
	IS(-EINVAL, sietch_unbind(NULL, socket));
	IS(-EINVAL, sietch_listen(NULL, 7, 1, &listener));
	IS(-EINVAL, sietch_stop_listening(NULL, listener));
	IS(-EINVAL, sietch_connect(NULL, &to, &connection));
	IS(-EINVAL, sietch_close(NULL, connection));
	IS(0, sietch_connection_index(connection));
	IS(-EINVAL, sietch_send_to(NULL, socket, &to, data));
	IS(-EINVAL, sietch_send_bytes_to(NULL, socket, &to, bytes, sizeof bytes));
	IS(-EINVAL, sietch_send(NULL, connection, data, &left));
	IS(-EINVAL, sietch_send_bytes(NULL, connection, bytes, sizeof bytes));
	IS(-EINVAL, sietch_done(NULL, data));
	IS(-EINVAL, sietch_data_len(NULL, data));
	IS(-EINVAL, sietch_data_parts(NULL, data, &part, 1));
	IS(-EINVAL, sietch_data_copy(NULL, data, 0, bytes, sizeof bytes));
	IS(-EINVAL, sietch_buffer(NULL, &data));
	IS(-EINVAL, sietch_buffer_space(NULL, data, &part));
	IS(-EINVAL, sietch_buffer_commit(NULL, data, 1));
}

int main(void)
{
	configurations();
	nulls();
	if (!failures)
		puts("fine");
	return failures != 0;
}
