/* What the compiler makes of the header's structs: NAME SIZE, and NAME.FIELD OFFSET. */
#include <stdio.h>

#include <sietch-io.h>

#define SIZE(name) printf(#name " %zu\n", sizeof(struct sietch_##name))
#define FIELD(name, field) printf(#name "." #field " %zu\n", offsetof(struct sietch_##name, field))
#define KIND(name) printf(#name " %d\n", (int)SIETCH_##name)

int main(void)
{
	SIZE(socket);
	SIZE(listener);
	SIZE(connection);
	SIZE(data);
	SIZE(config);
	FIELD(config, link);
	FIELD(config, address);
	FIELD(config, gateway);
	FIELD(config, ring_entries);
	FIELD(config, chunks);
	FIELD(config, sockets_max);
	FIELD(config, reserved);
	SIZE(event);
	FIELD(event, kind);
	FIELD(event, error);
	FIELD(event, socket);
	FIELD(event, listener);
	FIELD(event, connection);
	FIELD(event, data);
	FIELD(event, from);
	FIELD(event, reserved);
	SIZE(counter);
	FIELD(counter, value);
	FIELD(counter, name);
	KIND(DATAGRAM);
	KIND(UNDELIVERED);
	KIND(ACCEPTED);
	KIND(CONNECTED);
	KIND(RECEIVED);
	KIND(SENDABLE);
	KIND(ENDED);
	KIND(LOST);
	return 0;
}
