/*
 * Sends every datagram back to where it came from, at port 7 (RFC 862), over a link of its own:
 *
 *	udp_echo vnic0 10.0.2.61/24
 */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include <sietch-io.h>

enum { ECHO = 7 };

int main(int argc, char **argv)
{
	struct sietch_config config = { 0 };
	struct sietch_queue *queue;
	struct sietch_socket socket;
	struct sietch_event event;
	int error;

	if (argc != 3)
		errx(2, "udp_echo LINK ADDRESS/PREFIX");
	config.link = argv[1];
	config.address = argv[2];
	if (sietch_queue_open(&config, &queue) < 0)
		errx(1, "%s", sietch_open_error());
	if ((error = sietch_bind(queue, ECHO, &socket)) < 0)
		errx(1, "port %d: %s", ECHO, strerror(-error));
	puts("serving");
	fflush(stdout);
	while ((error = sietch_poll(queue, -1)) == 0)
		while (sietch_receive(queue, &event) == 1)
			if (event.kind == SIETCH_DATAGRAM)
				/* In the buffer in which it came. One that cannot be sent is lost, as datagrams are. */
				sietch_send_to(queue, event.socket, &event.from, event.data);
	errx(1, "%s: %s", argv[1], strerror(-error));
}
