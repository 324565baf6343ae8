"""Opens connections to itself: `burst.py IN_TURN AT_ONCE`.

So many one after the other, each closed first by its server, and then so many at once,
which must all come to be. What the kernel did about them is in its counters.
"""
import socket
import sys

NAME = ("127.0.0.1", 7000)
in_turn, at_once = map(int, sys.argv[1:])

server = socket.create_server(NAME, backlog=at_once)
for _ in range(in_turn):
    client = socket.create_connection(NAME)
    server.accept()[0].close()
    client.close()
clients = [socket.socket() for _ in range(at_once)]
for client in clients:
    client.setblocking(False)
    client.connect_ex(NAME)
accepted = [server.accept()[0] for _ in clients]
print("opened", in_turn + len(accepted))
