//! Debian's `ip` and `ss` read what we write.

use std::net::SocketAddr;
use std::process::Command;

use netlink::{
    Address, DiagSocket, Dump, Emit, Flags, Header, Link, Neighbour, Nexthop, Nexthops, Progress,
    Route, Rule, SocketId, Writer,
};

/// A dump of these objects.
fn dump<T: Emit>(objects: &[T]) -> Vec<u8> {
    let request = Header {
        kind: 0,
        flags: Flags::DUMP,
        sequence: 1,
        port: 0,
    };
    let mut buffer = vec![0; 1 << 16];
    let mut writer = Writer::new(&mut buffer);
    assert_eq!(
        Dump::new(&request, 0).fill(&mut writer, objects.iter()),
        Progress::Done
    );
    let len = writer.len();
    buffer.truncate(len);
    buffer
}

/// A file that is gone afterwards.
struct File(std::path::PathBuf);

impl File {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("netlink-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("a file");
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What a tool prints, with single spaces.
fn output(command: &mut Command) -> String {
    let output = command
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .expect("iproute2 is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n") + &errors
}

/// What `ip` makes of the messages. It ends a file at the first dump's end, so only objects.
fn ip_reads<T: Emit>(name: &str, objects: &[T]) -> String {
    let mut bytes = dump(objects);
    bytes.truncate(bytes.len() - 20);
    let file = File::new(name, &bytes);
    output(Command::new("ip").args(["monitor", "file"]).arg(&file.0))
}

fn address(text: &str) -> Option<std::net::IpAddr> {
    Some(text.parse().expect("an address"))
}

#[test]
fn ip_shows_links_and_their_addresses() {
    let link = Link {
        hardware_type: 1,
        index: 7,
        flags: 0x1_1043,
        name: Some(b"net7"),
        mtu: Some(1500),
        address: Some(&[2, 0, 0, 0, 0, 7]),
        broadcast: Some(&[0xff; 6]),
        queueing: Some(b"noqueue"),
        operational_state: Some(6),
        queue_frames: Some(1000),
        ..Link::default()
    };
    let shown = ip_reads("links", &[link]);
    assert!(
        shown
            .contains("7: net7: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP"),
        "{shown}"
    );
    assert!(
        shown.contains("link/ether 02:00:00:00:00:07 brd ff:ff:ff:ff:ff:ff"),
        "{shown}"
    );
    let four = Address {
        family: 2,
        prefix_len: 24,
        flags: 0x80,
        link: 7,
        address: address("192.0.2.7"),
        local: address("192.0.2.7"),
        broadcast: address("192.0.2.255"),
        label: Some(b"net7"),
        lifetimes: Some([u32::MAX, u32::MAX, 5, 5]),
        ..Address::default()
    };
    let shown = ip_reads("addresses", &[four]);
    assert!(
        shown.contains("inet 192.0.2.7/24 brd 192.0.2.255 scope global net7"),
        "{shown}"
    );
    assert!(
        shown.contains("valid_lft forever preferred_lft forever"),
        "{shown}"
    );
}

#[test]
fn ip_shows_routes_neighbours_and_rules() {
    let main = Route {
        family: 2,
        table: 254,
        protocol: 3,
        kind: 1,
        ..Route::default()
    };
    let hop = |gateway| Nexthop {
        gateway: address(gateway),
        ..Nexthop::default()
    };
    let hops = [hop("192.0.2.1"), hop("192.0.2.2")];
    let routes = [
        Route {
            gateway: address("192.0.2.254"),
            metric: Some(5),
            mtu: Some(1300),
            ..main
        },
        Route {
            destination: address("10.0.0.0"),
            destination_len: 8,
            gateway: address("fe80::1"),
            ..main
        },
        Route {
            destination: address("10.1.0.0"),
            destination_len: 16,
            nexthops: Some(Nexthops::new(&hops)),
            ..main
        },
    ];
    let shown = ip_reads("routes", &routes);
    assert!(
        shown.contains("default via 192.0.2.254 metric 5 mtu 1300"),
        "{shown}"
    );
    assert!(shown.contains("10.0.0.0/8 via inet6 fe80::1"), "{shown}");
    assert!(shown.contains("nexthop via 192.0.2.2"), "{shown}");
    let neighbour = Neighbour {
        family: 2,
        link: 1,
        state: 2,
        kind: 1,
        address: address("192.0.2.9"),
        link_address: Some(&[2, 0, 0, 0, 0, 9]),
        ..Neighbour::default()
    };
    let shown = ip_reads("neighbours", &[neighbour]);
    assert!(
        shown.contains("192.0.2.9 dev lo lladdr 02:00:00:00:00:09 REACHABLE"),
        "{shown}"
    );
    let rule = Rule {
        family: 2,
        source: address("192.0.2.0"),
        source_len: 24,
        table: 300,
        action: 1,
        priority: Some(1000),
        ..Rule::default()
    };
    let shown = ip_reads("rules", &[rule]);
    assert!(
        shown.contains("1000: from 192.0.2.0/24 lookup 300"),
        "{shown}"
    );
}

#[test]
fn ss_shows_sockets() {
    let socket = DiagSocket {
        state: 1,
        timer: 2,
        retransmits: 0,
        expires_ms: 9_000,
        id: SocketId {
            local: SocketAddr::from(([192, 0, 2, 7], 6379)),
            remote: SocketAddr::from(([198, 51, 100, 2], 40_000)),
            link: 0,
            cookie: 0x1001,
        },
        receive_queue: 17,
        send_queue: 23,
        user: 1000,
        inode: 4711,
        shutdown: Some(0),
        service: None,
        is_only_v6: None,
        congestion: Some(b"bbr"),
        info: Some(&[0; 248]),
        memory: None,
        socket_memory: Some([1, 2, 3, 4, 5, 6, 7, 8, 9]),
    };
    let listener = DiagSocket {
        state: 10,
        id: SocketId {
            local: "[2001:db8::1]:80".parse().expect("an address"),
            remote: "[::]:0".parse().expect("an address"),
            ..socket.id
        },
        timer: 0,
        expires_ms: 0,
        is_only_v6: Some(true),
        ..socket
    };
    let file = File::new("sockets", &dump(&[socket, listener]));
    let shown = output(
        Command::new("ss")
            .args(["-tanieom"])
            .env("TCPDIAG_FILE", &file.0),
    );
    assert!(
        shown.contains("ESTAB 17 23 192.0.2.7:6379 198.51.100.2:40000"),
        "{shown}"
    );
    assert!(shown.contains("timer:(keepalive,9sec,0)"), "{shown}");
    assert!(shown.contains("uid:1000 ino:4711 sk:1001"), "{shown}");
    assert!(
        shown.contains("skmem:(r1,rb2,t3,tb4,f5,w6,o7,bl8,d9)"),
        "{shown}"
    );
    assert!(shown.contains(" bbr "), "{shown}");
    assert!(shown.contains("LISTEN 17 23 [2001:db8::1]:80"), "{shown}");
    assert!(shown.contains("v6only:1"), "{shown}");
}
