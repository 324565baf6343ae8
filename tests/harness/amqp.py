"""Load for a RabbitMQ server: `amqp.py HOST PORT CONNECTIONS MESSAGES`.

Each connection publishes so many persistent messages into a durable queue of its own,
every one confirmed by the server, then consumes them from a fresh connection. They must come
complete, in order and unchanged, and the queue must be empty afterwards.
"""
import sys
import threading

import pika

HOST, PORT, CONNECTIONS, MESSAGES = sys.argv[1], *map(int, sys.argv[2:])
# The server may take as many unacknowledged messages as this.
WINDOW = 100


def connect():
    return pika.BlockingConnection(pika.ConnectionParameters(HOST, PORT, heartbeat=0))


def body(queue, number):
    """Mostly small, and every hundredth larger than a frame of AMQP."""
    text = f"message {number} of {queue} ".encode()
    return text * (10_000 if number % 100 == 99 else 1 + number % 50)


def publish(queue):
    with connect() as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True)
        # From here on a publication that the server does not confirm is an exception.
        channel.confirm_delivery()
        persistent = pika.BasicProperties(delivery_mode=2)
        for number in range(MESSAGES):
            channel.basic_publish("", queue, body(queue, number), persistent, mandatory=True)


def consume(queue):
    with connect() as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=WINDOW)
        for number, (method, properties, found) in enumerate(channel.consume(queue)):
            assert found == body(queue, number), (queue, number, found[:80])
            assert properties.delivery_mode == 2 and not method.redelivered, (queue, number)
            channel.basic_ack(method.delivery_tag)
            if number + 1 == MESSAGES:
                break
        channel.cancel()
        left = channel.queue_declare(queue, passive=True).method.message_count
        assert left == 0, (queue, left)


def in_threads(work, finished):
    def run(queue):
        work(queue)
        finished.append(queue)
    threads = [threading.Thread(target=run, args=[f"queue {n}"]) for n in range(CONNECTIONS)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return len(finished) == CONNECTIONS


assert in_threads(publish, []), "not all published"
assert in_threads(consume, []), "not all consumed"
print("passed on", CONNECTIONS * MESSAGES)
