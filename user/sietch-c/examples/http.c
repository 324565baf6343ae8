/*
 * A server of one document by HTTP/1.1, at port 80 of a link of its own:
 *
 *	http vnic0 10.0.2.61/24 index.html
 *
 * Requests need not be kept, as all have the same answer: their ends are counted. While a peer takes no answers it
 * is owed more of them; one that goes on asking then is closed. It waits by poll(2), as a program with other
 * descriptors would.
 */
#include <err.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sietch-io.h>

enum { HTTP = 80, BACKLOG = 1024, CLIENTS = 16384, OWED_MAX = 1000, PARTS = 64 };

static struct client {
	struct sietch_connection connection;
	unsigned matched; /* bytes of the end of a request */
	unsigned owed;    /* answers */
	size_t sent;      /* of the first of them */
	bool ended;       /* nothing more comes */
} clients[CLIENTS];

static struct sietch_queue *queue;
static char *answer;
static size_t answer_len;

/* Header and document, ready to be sent. */
static void load(const char *path)
{
	FILE *file = fopen(path, "rb");
	long len;
	int head;

	if (!file || fseek(file, 0, SEEK_END) < 0 || (len = ftell(file)) < 0)
		err(1, "%s", path);
	rewind(file);
	if (!(answer = malloc(len + 100)))
		err(1, "%s", path);
	head = sprintf(answer, "HTTP/1.1 200 OK\r\nContent-Length: %ld\r\n\r\n", len);
	answer_len = head + fread(answer + head, 1, len, file);
	fclose(file);
}

/* Counts the requests that end in these bytes. */
static void count(struct client *client, const char *bytes, size_t len)
{
	static const char end[] = "\r\n\r\n";

	for (size_t at = 0; at < len; at++) {
		client->matched = bytes[at] == end[client->matched] ? client->matched + 1 : bytes[at] == '\r';
		if (!end[client->matched]) {
			client->matched = 0;
			client->owed++;
		}
	}
}

static void requests(struct client *client, struct sietch_data data)
{
	struct iovec parts[PARTS];
	ssize_t pieces = sietch_data_parts(queue, data, parts, PARTS);

	if (pieces > PARTS)
		client->owed = OWED_MAX + 1;
	for (ssize_t at = 0; at < pieces && at < PARTS; at++)
		count(client, (const char *)parts[at].iov_base, parts[at].iov_len);
	sietch_done(queue, data);
}

/* Sends what there is room for; closes when all is said, or asked too much. */
static void answer_to(struct client *client)
{
	ssize_t sent = 0;

	while (client->owed && client->owed <= OWED_MAX) {
		sent = sietch_send_bytes(queue, client->connection, answer + client->sent,
					 answer_len - client->sent);
		if (sent < 0)
			break; /* No room: SIETCH_SENDABLE follows, or SIETCH_LOST. */
		client->sent += sent;
		if (client->sent == answer_len) {
			client->sent = 0;
			client->owed--;
		}
	}
	if (client->owed > OWED_MAX || (client->ended && !client->owed))
		sietch_close(queue, client->connection);
}

static void handle(struct sietch_event *event)
{
	struct client *client = &clients[sietch_connection_index(event->connection) % CLIENTS];

	if (event->kind == SIETCH_ACCEPTED) {
		memset(client, 0, sizeof *client);
		client->connection = event->connection;
	} else if (event->kind != SIETCH_LOST) {
		if (event->kind == SIETCH_RECEIVED)
			requests(client, event->data);
		client->ended |= event->kind == SIETCH_ENDED;
		answer_to(client);
	}
}

int main(int argc, char **argv)
{
	struct sietch_config config = { 0 };
	struct sietch_listener listener;
	struct sietch_event event;
	int error, timeout_ms;

	if (argc != 4)
		errx(2, "http LINK ADDRESS/PREFIX DOCUMENT");
	load(argv[3]);
	config.link = argv[1];
	config.address = argv[2];
	config.sockets_max = CLIENTS;
	if (sietch_queue_open(&config, &queue) < 0)
		errx(1, "%s", sietch_open_error());
	if ((error = sietch_listen(queue, HTTP, BACKLOG, &listener)) < 0)
		errx(1, "port %d: %s", HTTP, strerror(-error));
	puts("serving");
	fflush(stdout);
	while ((error = sietch_poll(queue, 0)) == 0) {
		struct pollfd frames = { .fd = sietch_queue_fd(queue), .events = POLLIN };

		while (sietch_receive(queue, &event) == 1)
			handle(&event);
		if ((error = sietch_arm(queue, &timeout_ms)) < 0)
			break;
		poll(&frames, 1, timeout_ms);
	}
	errx(1, "%s: %s", argv[1], strerror(-error));
}
