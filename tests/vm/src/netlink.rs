//! What programs learn and change through netlink sockets: Debian's `ip`, and libraries.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use crate::Test;
use crate::build::{self, Link};
use crate::guest::Setup;
use crate::links::{Row, expect};
use crate::operator::Operator;

/// The tests.
pub const TESTS: &[Test] = &[
    ("Debian's ip shows what the network knows", ip_shows),
    ("Debian's ip changes addresses and routes", ip_changes),
    (
        "Debian's ip monitor hears of changes, whoever made them",
        ip_monitors,
    ),
    (
        "Debian's ss shows sockets, and which it is asked for",
        ss_shows,
    ),
    (
        "musl, Go and Node find the interfaces through netlink",
        libraries,
    ),
];

const IP: &str = "/usr/sbin/ip";
const SS: &str = "/usr/bin/ss";
const REDIS: &str = "/usr/bin/redis-server";
/// Nobody listens here; a machine that serves has a network.
const PORT: u16 = 8080;

/// A shell with `ip` in a machine with a network.
fn operator(setup: &Setup) -> Result<Operator, String> {
    let (mut operator, _) = Operator::start(setup, PORT, &["--add", IP])?;
    // The address may be on its way from a DHCP server.
    let wait = format!("until {IP} addr show dev eth0 | grep -q 10.0.2.15; do sleep 0.1; done");
    operator.ask(&wait)?;
    operator.ask(&format!("alias ip={IP}"))?;
    Ok(operator)
}

/// What `ip` shows of a machine that has just booted.
const SHOWN: &[Row<'_>] = &[
    (
        "ip link",
        &[
            "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536",
            "2: eth0: <BROADCAST,MULTICAST,UP",
        ],
    ),
    (
        "ip -s link show dev eth0",
        &["link/ether 52:54:00", "RX:  bytes", "TX:  bytes"],
    ),
    (
        "ip addr",
        &[
            "inet 127.0.0.1/8 scope host lo",
            "inet 10.0.2.15/24",
            "scope global",
        ],
    ),
    (
        "ip -j addr",
        &[
            "\"ifname\":\"eth0\"",
            "\"local\":\"10.0.2.15\",\"prefixlen\":24",
        ],
    ),
    ("ip -br addr show dev lo", &["lo", "127.0.0.1/8"]),
    (
        "ip route",
        &[
            "default via 10.0.2.2 dev eth0",
            "10.0.2.0/24 dev eth0 proto kernel scope link",
        ],
    ),
    (
        "ip -j route",
        &["\"dst\":\"default\",\"gateway\":\"10.0.2.2\",\"dev\":\"eth0\""],
    ),
    (
        "ip route show table local",
        &["local 10.0.2.15 dev eth0", "broadcast 10.0.2.255 dev eth0"],
    ),
    (
        "ip route get 192.0.2.7",
        &["192.0.2.7 via 10.0.2.2 dev eth0 src 10.0.2.15"],
    ),
    ("ip route get 127.0.0.9", &["local 127.0.0.9 dev lo"]),
    (
        "ip rule",
        &["from all lookup local", "32766:", "from all lookup default"],
    ),
    (
        "until ip -6 addr show dev eth0 -tentative | grep -q fe80; do sleep 0.1; done; ip -6 addr",
        &[
            "inet6 ::1/128 scope host",
            "inet6 fe80::5054:ff:fe12:3456/64 scope link",
        ],
    ),
    ("ip -6 route", &["fe80::/64 dev eth0 proto kernel"]),
    ("ip -6 route get ::1", &["local ::1 dev lo"]),
    (
        "ip link show dev eth7",
        &["Device \"eth7\" does not exist."],
    ),
];

fn ip_shows(setup: &Setup) -> Result<(), String> {
    let mut shell = operator(setup)?;
    expect(&mut shell, SHOWN)?;
    shell.leave().map(drop)
}

/// What `ip` changes, and what is refused, one after the other.
const CHANGED: &[Row<'_>] = &[
    (
        "ip addr add 10.0.2.15/24 dev eth0 || echo refused",
        &["File exists", "refused"],
    ),
    (
        "ip route add 192.168.7.0/24 via 10.0.2.9 && ip route; cat /proc/net/route",
        &[
            "192.168.7.0/24 via 10.0.2.9 dev eth0",
            "eth0\t0007A8C0\t0902000A\t0003",
        ],
    ),
    (
        "ip route add 192.168.7.0/24 via 10.0.2.9 || echo refused",
        &["File exists", "refused"],
    ),
    (
        "ip route get 192.168.7.1",
        &["via 10.0.2.9 dev eth0 src 10.0.2.15"],
    ),
    (
        "ip route del 192.168.7.0/24; ip route get 192.168.7.1",
        &["via 10.0.2.2 dev eth0"],
    ),
    (
        "ip neigh add 10.0.2.77 lladdr 02:00:00:00:00:77 dev eth0 && ip neigh; \
             cat /proc/net/arp",
        &[
            "10.0.2.77 dev eth0 lladdr 02:00:00:00:00:77 PERMANENT",
            "10.0.2.77        0x1         0x6         02:00:00:00:00:77",
        ],
    ),
    (
        "ip neigh del 10.0.2.77 dev eth0; ip neigh del 10.0.2.77 dev eth0 || echo refused",
        &["No such file or directory", "refused"],
    ),
    (
        "ip addr add 2001:db8::7/64 dev eth0 && ip -6 addr show dev eth0",
        &["inet6 2001:db8::7/64 scope global"],
    ),
    (
        "ip route add 2001:db8:9::/48 via fe80::2 dev eth0 && ip -6 route",
        &[
            "2001:db8:9::/48 via fe80::2 dev eth0",
            "2001:db8::/64 dev eth0",
        ],
    ),
    (
        "ip route del default && ip route || echo refused",
        &["10.0.2.0/24"],
    ),
    (
        "ip route get 192.0.2.7 || echo refused",
        &["Network is unreachable", "refused"],
    ),
    (
        "ip route add default via 172.16.0.1 || echo refused",
        &["Network is unreachable", "refused"],
    ),
    (
        "ip route add default via 10.0.2.9 && ip route",
        &["default via 10.0.2.9 dev eth0"],
    ),
    (
        "ip route add default via 10.0.2.2 || echo refused",
        &["File exists", "refused"],
    ),
    (
        "ip route replace default via 10.0.2.2 && ip route",
        &["default via 10.0.2.2 dev eth0"],
    ),
    (
        "ip addr del 10.0.2.15/24 dev eth0; ip addr add 10.7.7.7/16 dev eth0; ip route",
        &["10.7.0.0/16 dev eth0 proto kernel scope link src 10.7.7.7"],
    ),
    (
        "ip addr del 10.0.2.15/24 dev eth0 || echo refused",
        &["Cannot assign requested address", "refused"],
    ),
    ("ip link set eth0 mtu 70000 || echo refused", &["refused"]),
];

fn ip_changes(setup: &Setup) -> Result<(), String> {
    let mut shell = operator(setup)?;
    expect(&mut shell, CHANGED)?;
    shell.leave().map(drop)
}

fn ip_monitors(setup: &Setup) -> Result<(), String> {
    let mut shell = operator(setup)?;
    shell.ask("ip monitor > /tmp/news & monitor=$!")?;
    // A member of its groups at once, it throws away what arrives while it asks for the
    // links' names (iproute2's ll_init_map), so changes are made until it tells of one.
    let wait = "until grep -q 192.0.2.0 /tmp/news; do \
        ip route add 192.0.2.0/24 dev eth0; ip route del 192.0.2.0/24; sleep 0.1; done";
    shell.ask(wait)?;
    shell.ask("ip addr del 10.0.2.15/24 dev eth0; ip addr add 10.7.7.7/16 dev eth0")?;
    shell.ask("ip route add default via 10.7.0.1")?;
    shell.ask("until grep -q 'default via 10.7.0.1' /tmp/news; do sleep 0.1; done")?;
    shell.ask("ip link set dev eth0 promisc on")?;
    shell.ask("until grep -q PROMISC /tmp/news; do sleep 0.1; done")?;
    let news: Row<'_> = (
        "kill $monitor; cat /tmp/news",
        &[
            "Deleted default via 10.0.2.2 dev eth0",
            "Deleted 2: eth0    inet 10.0.2.15/24",
            "2: eth0    inet 10.7.7.7/16",
            "10.7.0.0/16 dev eth0 proto kernel scope link src 10.7.7.7",
            "2: eth0: <BROADCAST,MULTICAST,PROMISC,UP",
        ],
    );
    expect(&mut shell, &[news])?;
    shell.leave().map(drop)
}

/// A conversation with Redis from outside, one of Unix, and a datagram socket.
const SOCKETS: &str = "import socket, time; \
    held = [socket.socket(socket.AF_UNIX) for _ in range(2)]; \
    [one.connect('/tmp/redis.sock') for one in held]; \
    bound = socket.socket(type=socket.SOCK_DGRAM); bound.bind(('127.0.0.1', 5353)); \
    pair = socket.socketpair(); print('#open', flush=True); time.sleep(1000)";

fn ss_shows(setup: &Setup) -> Result<(), String> {
    let library = build::python_library()?;
    let flags = [
        "-m",
        "512M",
        "--add",
        SS,
        "--add",
        REDIS,
        "--add",
        "/usr/bin/python3",
        "--add",
        &library,
    ];
    let (mut shell, address) = Operator::start(setup, 6379, &flags)?;
    let server = "--save '' --unixsocket /tmp/redis.sock --daemonize yes --protected-mode no";
    shell.ask(&format!("{REDIS} {server} > /tmp/log"))?;
    shell.guest.expect_answer(address, b"PING\r\n")?;
    let client = TcpStream::connect(address).map_err(|error| error.to_string())?;
    (&client)
        .write_all(b"PING\r\n")
        .map_err(|error| error.to_string())?;
    (&client)
        .read(&mut [0; 8])
        .map_err(|error| error.to_string())?;
    shell.ask(&format!(
        "/usr/bin/python3 -c \"{SOCKETS}\" > /tmp/python &"
    ))?;
    shell.ask("until grep -q open /tmp/python; do sleep 0.1; done; alias ss=/usr/bin/ss")?;
    let rows: &[Row<'_>] = &[
        ("ss -tan", &["LISTEN", "0.0.0.0:6379", "ESTAB"]),
        (
            "ss -tnpi",
            &[
                "users:((\"redis-server\",pid=",
                "cubic",
                "rtt:",
                "cwnd:",
                "mss:",
            ],
        ),
        ("ss -tlnm", &["skmem:(r0,rb", "511"]),
        ("ss -Htan state listening sport = :6379", &["511"]),
        ("ss -uan", &["UNCONN", "127.0.0.1:5353"]),
        (
            "ss -xap",
            &[
                "/tmp/redis.sock",
                "u_str",
                "ESTAB",
                "LISTEN",
                "users:((\"python3\",",
            ],
        ),
        ("ss -s", &["estab", "TCP", "UDP"]),
        ("cat /proc/net/udp", &["0100007F:14E9"]),
        ("cat /proc/net/unix", &["/tmp/redis.sock"]),
    ];
    expect(&mut shell, rows)?;
    let others = shell
        .ask("ss -Htan 'sport != :6379'; ss -Htan dst 192.0.2.0/24; ss -Htan state syn-sent")?;
    if others.contains("6379") {
        return Err(format!("the filters select too much: {others}"));
    }
    drop(client);
    shell.leave().map(drop)
}

fn libraries(setup: &Setup) -> Result<(), String> {
    let c = build::c_linked(
        Path::new("tests/programs/net_interfaces.c"),
        Link::StaticMusl,
    )?;
    let go = build::go(Path::new("tests/programs/go_interfaces.go"))?;
    let node = "JSON.stringify(os.networkInterfaces())";
    let adds = [&c, &go].map(|path| format!("{}:/{}", path.display(), name_of(path)));
    let [c_add, go_add] = &adds;
    let flags = [
        "-m",
        "768M",
        "--add",
        IP,
        "--add",
        c_add,
        "--add",
        go_add,
        "--add",
        "/usr/bin/node",
    ];
    let (mut shell, _) = Operator::start(setup, PORT, &flags)?;
    let wait = format!("until {IP} addr show dev eth0 | grep -q 10.0.2.15; do sleep 0.1; done");
    shell.ask(&wait)?;
    let with_node = format!("/usr/bin/node -p '{node}'");
    let rows: &[Row<'_>] = &[
        (
            "/net_interfaces",
            &[
                "ok loopback_has_its_address",
                "# eth0 has an address",
                "ok each_interface",
            ],
        ),
        (
            "/go_interfaces",
            &[
                "1 lo",
                "127.0.0.1/8",
                "2 eth0 52:54:00",
                "broadcast",
                "10.0.2.15/24",
            ],
        ),
        (
            &with_node,
            &[
                "\"address\":\"10.0.2.15\"",
                "\"mac\":\"52:54:00",
                "\"cidr\":\"127.0.0.1/8\"",
            ],
        ),
    ];
    expect(&mut shell, rows)?;
    shell.leave().map(drop)
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
