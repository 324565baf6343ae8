"""Changes settings of the network with sysctl(8), and sees what each does.

Run as root in a machine of its own. Any difference is an exception, which says it.
"""
import errno
import socket
import subprocess

NAME = ("127.0.0.1", 7000)


def sysctl(name):
    said = subprocess.run(["/sbin/sysctl", "-n", name], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    return said.stdout.strip()


def change(name, value):
    """Whether sysctl(8) could set it."""
    said = subprocess.run(["/sbin/sysctl", "-q", "-w", f"{name}={value}"], capture_output=True)
    return said.returncode == 0 and not said.stderr


def set_all(values):
    for name, value in values.items():
        assert change(name, value), (name, value)
        # Numbers of one setting are apart by tabs.
        assert sysctl(name).split() == str(value).split(), (name, value, sysctl(name))


def count(name):
    """A counter of /proc/net/netstat."""
    with open("/proc/net/netstat") as file:
        lines = [line.split() for line in file]
    for names, values in zip(lines[::2], lines[1::2]):
        if name in names:
            return int(values[names.index(name)])
    raise KeyError(name)


def time_waits():
    with open("/proc/net/sockstat") as file:
        words = file.read().split()
    return int(words[words.index("tw") + 1])


def frame_of(send, wanted):
    """The first packet that `send` causes on the loopback and that is `wanted`."""
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
    tap.bind(("lo", 0))
    tap.settimeout(5)
    send()
    while True:
        packet = tap.recv(4096)
        if wanted(packet):
            return packet


def syn_options():
    """The kinds of options in the SYN of a new connection."""
    def send():
        socket.create_connection(NAME).close()
    packet = frame_of(send, lambda packet: packet[9] == 6 and packet[33] & 0x12 == 0x02)
    options, kinds = packet[40:20 + (packet[32] >> 4) * 4], set()
    while options and options[0] != 0:
        if options[0] == 1:
            options = options[1:]
        else:
            kinds.add(options[0])
            options = options[options[1]:]
    return kinds


def what_does_not_fit_is_refused():
    for name, values in {
        "net.ipv4.ip_default_ttl": ["0", "256", "-1", "many"],
        "net.ipv4.ip_local_port_range": ["60000 50000", "80 90", "1024", "1024 70000", "1 2 3"],
        "net.ipv4.ip_local_reserved_ports": ["0", "5-4", "70000", "a"],
        "net.ipv4.tcp_tw_reuse": ["3"],
        "net.ipv4.tcp_syncookies": ["3"],
        "net.ipv4.tcp_ecn": ["9"],
        "net.ipv4.tcp_sack": ["2"],
        "net.ipv4.tcp_syn_retries": ["0", "128"],
        "net.ipv4.tcp_retries2": ["256"],
        "net.ipv4.tcp_keepalive_time": ["0", "32768"],
        "net.ipv4.tcp_rmem": ["8192 131072 6291456", "4096 131072", "4096 9000 8000"],
        "net.ipv4.tcp_mem": ["1 2", "1 2 -3", "many"],
        "net.ipv4.tcp_congestion_control": ["vegas"],
        "net.ipv4.tcp_fin_timeout": ["-5", "99999999"],
        "net.core.rmem_max": ["100"],
        "net.core.somaxconn": ["-1"],
        "net.sietch.tcp_time_wait_interval": ["999", "600001", "1500"],
        # What this kernel does not have.
        "net.ipv4.tcp_fastopen": ["3"],
        "net.ipv4.tcp_mtu_probing": ["1"],
        "net.ipv4.ip_no_pmtu_disc": ["1"],
        "net.ipv4.ip_forward": ["1"],
        "net.ipv4.icmp_ratelimit": ["1000"],
        "net.ipv4.tcp_available_congestion_control": ["reno"],
        "net.sietch.tcp_clumsy": ["1"],
    }.items():
        before = sysctl(name)
        for value in values:
            assert not change(name, value), (name, value)
            assert sysctl(name) == before, (name, value)
    # A file of settings may name what is so anyway.
    set_all({"net.ipv4.tcp_fastopen": 0, "net.ipv4.ip_forward": 0})


def ports_come_from_the_range_without_those_reserved():
    set_all({
        "net.ipv4.ip_local_port_range": "40000 40009",
        "net.ipv4.ip_local_reserved_ports": "40003-40004,40009",
    })
    server = socket.create_server(NAME)
    clients = [socket.create_connection(NAME) for _ in range(7)]
    ports = sorted(client.getsockname()[1] for client in clients)
    assert ports == [40000, 40001, 40002, 40005, 40006, 40007, 40008], ports
    try:
        socket.create_connection(NAME)
        raise AssertionError("an eighth port")
    except OSError as error:
        assert error.errno == errno.EADDRNOTAVAIL, error
    [end.close() for end in clients + [server]]
    set_all({"net.ipv4.ip_local_port_range": "32768 60999"})
    assert change("net.ipv4.ip_local_reserved_ports", "")


def finished_connections_are_kept_up_to_a_limit():
    set_all({"net.sietch.tcp_time_wait_same_host": 1, "net.ipv4.tcp_max_tw_buckets": 3})
    before = count("TCPTimeWaitOverflow")
    server = socket.create_server(NAME)
    for _ in range(10):
        client = socket.create_connection(NAME)
        server.accept()[0].close()
        client.close()
    assert (time_waits(), count("TCPTimeWaitOverflow") - before) == (3, 7), time_waits()
    set_all({"net.ipv4.tcp_max_tw_buckets": 1})
    assert time_waits() == 1, time_waits()
    set_all({"net.sietch.tcp_time_wait_same_host": 0, "net.ipv4.tcp_max_tw_buckets": 16384})


def packets_on_the_wire_are_as_chosen():
    set_all({"net.ipv4.ip_default_ttl": 77})
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    packet = frame_of(lambda: sender.sendto(b"x", NAME), lambda packet: packet[9] == 17)
    assert packet[8] == 77, packet
    server = socket.create_server(NAME)
    # Segment size, scaled windows, SACK and timestamps.
    assert syn_options() == {2, 3, 4, 8}, syn_options()
    names = ["window_scaling", "sack", "timestamps"]
    set_all({f"net.ipv4.tcp_{name}": 0 for name in names})
    assert syn_options() == {2}, syn_options()
    set_all({f"net.ipv4.tcp_{name}": 1 for name in names})
    server.close()


def sockets_begin_with_what_was_chosen():
    set_all({
        "net.ipv4.tcp_keepalive_time": 600,
        "net.ipv4.tcp_keepalive_intvl": 30,
        "net.ipv4.tcp_keepalive_probes": 4,
        "net.ipv4.tcp_congestion_control": "reno",
        "net.ipv4.tcp_rmem": "4096 100000 200000",
        "net.ipv4.tcp_wmem": "4096 90000 200000",
        "net.core.rmem_default": 80000,
        "net.core.rmem_max": 65536,
    })
    stream = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    tcp, level = socket.IPPROTO_TCP, socket.SOL_SOCKET
    for option, value in {
        socket.TCP_KEEPIDLE: 600,
        socket.TCP_KEEPINTVL: 30,
        socket.TCP_KEEPCNT: 4,
    }.items():
        assert stream.getsockopt(tcp, option) == value, option
    assert stream.getsockopt(tcp, socket.TCP_CONGESTION, 16).rstrip(b"\0") == b"reno"
    assert stream.getsockopt(level, socket.SO_RCVBUF) == 100000
    assert stream.getsockopt(level, socket.SO_SNDBUF) == 90000
    assert datagram.getsockopt(level, socket.SO_RCVBUF) == 80000
    for end in (stream, datagram, *socket.socketpair()):
        end.setsockopt(level, socket.SO_RCVBUF, 1 << 20)
        assert end.getsockopt(level, socket.SO_RCVBUF) == 2 * 65536


def a_queue_is_no_longer_than_allowed():
    set_all({"net.core.somaxconn": 1})
    before = count("ListenOverflows")
    server = socket.socket()
    server.bind(("127.0.0.1", 7001))
    server.listen(100)
    clients = [socket.socket() for _ in range(9)]
    for client in clients:
        client.setblocking(False)
        client.connect_ex(("127.0.0.1", 7001))
    assert count("ListenOverflows") > before
    [end.close() for end in clients + [server]]


def ipv6_can_be_taken_away_and_given_back():
    def lines():
        with open("/proc/net/if_inet6") as file:
            return [line for line in file if "eth0" in line]
    assert lines() and sysctl("net.ipv6.conf.all.disable_ipv6") == "0"
    set_all({"net.ipv6.conf.all.disable_ipv6": 1})
    assert not lines()
    set_all({"net.ipv6.conf.all.disable_ipv6": 0})
    assert lines()


def echo_requests_can_be_left_without_an_answer():
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    raw.settimeout(2)
    request = bytes([8, 0, 0xf7, 0xfe, 0, 1, 0, 0])

    def is_answered():
        raw.sendto(request, ("127.0.0.1", 0))
        try:
            while raw.recv(2048)[20] != 0:
                pass
            return True
        except TimeoutError:
            return False
    assert is_answered()
    set_all({"net.ipv4.icmp_echo_ignore_all": 1})
    assert not is_answered()


for test in [
    what_does_not_fit_is_refused,
    ports_come_from_the_range_without_those_reserved,
    finished_connections_are_kept_up_to_a_limit,
    packets_on_the_wire_are_as_chosen,
    sockets_begin_with_what_was_chosen,
    a_queue_is_no_longer_than_allowed,
    ipv6_can_be_taken_away_and_given_back,
    echo_requests_can_be_left_without_an_answer,
]:
    test()
    print("ok", test.__name__)
print("all settings do what they say")
