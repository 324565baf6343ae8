//! What Linux answers: read, written again, and compared attribute by attribute.

use core::net::SocketAddr;

use netlink::{
    Ack, Attribute, DiagRequest, DiagSocket, Dump, Emit, Flags, Header, Message, Messages, Object,
    Progress, SocketId, Writer,
};

use crate::{first, parse, recorded};

/// The bytes of the structure that messages of this type start with.
fn structure_bytes(kind: u16) -> usize {
    match kind {
        16 => 16,
        20 => 8,
        _ => 12,
    }
}

fn attributes<'a>(message: &Message<'a>, structure: usize) -> Vec<Attribute<'a>> {
    message.attributes(structure).collect()
}

/// Writes the object as an answer like `like`.
fn written(object: &impl Emit, like: &Header) -> Vec<u8> {
    let mut buffer = vec![0; 4096];
    let mut writer = Writer::new(&mut buffer);
    let flags = like.flags;
    let header = Header {
        kind: object.kind(),
        flags,
        ..*like
    };
    writer
        .message(header, |body| object.emit(body))
        .expect("room");
    let len = writer.len();
    buffer.truncate(len);
    buffer
}

/// Whether Linux says the same in this attribute. It fills the end of counters with some
/// that we do not have, and puts more into kinds, metrics and ways than an object keeps.
fn says(linux: &Attribute, ours: &Attribute) -> bool {
    linux.kind == ours.kind
        && (linux.value == ours.value
            || linux
                .value
                .starts_with(&ours.value[..ours.value.len().min(72)]))
}

/// Reads what Linux answered to `command` and writes it again; returns how many attributes
/// were the same.
fn compare(command: &str) -> usize {
    let mut same = 0;
    for datagram in recorded(command, "<") {
        for linux in Messages::new(&datagram).filter(|one| one.header().kind >= 16) {
            let header = linux.header();
            let single = written_again(&linux);
            let ours = first(&single);
            let structure = structure_bytes(header.kind);
            assert_eq!(ours.header(), header, "{command}");
            assert_eq!(
                ours.body()[..structure],
                linux.body()[..structure],
                "{command}"
            );
            let theirs = attributes(&linux, structure);
            for attribute in attributes(&ours, structure) {
                let found = theirs.iter().any(|one| says(one, &attribute));
                assert!(found, "{command}: {attribute:?} is not in {theirs:?}");
                same += 1;
            }
        }
    }
    same
}

fn written_again(linux: &Message) -> Vec<u8> {
    let header = linux.header();
    match parse(linux.bytes()).object {
        Object::Link(link) => written(&link, &header),
        Object::Address(address) => written(&address, &header),
        Object::Route(route) => written(&route, &header),
        Object::Neighbour(neighbour) => written(&neighbour, &header),
        Object::Rule(rule) => written(&rule, &header),
    }
}

#[test]
fn objects_are_written_as_linux_writes_them() {
    assert_eq!(compare("ip -s link show d0"), 17);
    assert!(compare("ip addr show") >= 5 * 5);
    assert!(compare("ip route show") >= 15);
    assert!(compare("ip -6 route show") >= 10);
    assert!(compare("ip route get 203.0.113.9") >= 6);
    assert!(compare("ip neigh show") >= 10);
    assert!(compare("ip rule show") >= 10);
}

#[test]
fn acknowledgements_are_those_of_linux() {
    let check = |command: &str, ack: Ack| {
        let sent = recorded(command, ">");
        let got = recorded(command, "<");
        let mut buffer = [0; 256];
        let mut writer = Writer::new(&mut buffer);
        ack.emit(&first(sent.last().expect("sent")), 0, &mut writer)
            .expect("room");
        let len = writer.len();
        assert_eq!(buffer[..len], got.last().expect("got")[..], "{command}");
    };
    check("ip link set d0 up", Ack::default());
    let unreachable = Ack {
        error: 101,
        text: Some(b"Nexthop has invalid gateway"),
        ..Ack::default()
    };
    check("ip route add 10.0.0.0/8 via 203.0.113.77", unreachable);
}

#[test]
fn the_attribute_to_blame_is_named_behind_a_capped_request() {
    let sent = recorded("ip link set d0 mtu 1400", ">");
    let request = first(sent.last().expect("sent"));
    let ack = Ack {
        error: 22,
        offset: Some(32),
        is_capped: true,
        ..Ack::default()
    };
    let mut buffer = [0; 64];
    let mut writer = Writer::new(&mut buffer);
    ack.emit(&request, 9, &mut writer).expect("room");
    let answer = first(&buffer);
    assert_eq!(answer.header().flags, Flags::CAPPED | Flags::ACK_ATTRIBUTES);
    assert_eq!(answer.body()[..4], (-22_i32).to_le_bytes());
    let offset = answer.attributes(20).next().expect("an attribute");
    assert_eq!((offset.kind, offset.u32()), (2, Ok(32)));
    let blamed = request.attributes(16).next().expect("an attribute");
    assert_eq!(blamed.offset, 32);
}

/// How Linux ends a dump: type 3, several parts, no error.
const DONE: [u8; 20] = [20, 0, 0, 0, 3, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn a_socket_and_the_end_are_written_as_linux_writes_them() {
    let request = recorded("ss -tanie", ">");
    let asked = DiagRequest::parse(&first(&request[0])).expect("a request");
    let got = recorded("ss -tanie", "<");
    let linux: Vec<_> = got.iter().flat_map(|one| Messages::new(one)).collect();
    // The listener, first: what the kernel chose is taken from the answer itself.
    let number =
        |at: usize| u32::from_le_bytes(*linux[0].body()[at..].first_chunk().expect("four"));
    let listener = DiagSocket {
        state: 10,
        timer: 0,
        retransmits: 0,
        expires_ms: 0,
        id: SocketId {
            local: SocketAddr::from(([127, 0, 0, 1], 7000)),
            remote: SocketAddr::from(([0, 0, 0, 0], 0)),
            link: 0,
            cookie: number(44).into(),
        },
        receive_queue: 0,
        send_queue: 5,
        user: 0,
        inode: number(68),
        shutdown: Some(0),
        service: asked.wants(5).then_some(0),
        is_only_v6: None,
        congestion: Some(b"bbr"),
        info: None,
        memory: None,
        socket_memory: None,
    };
    let ours = written(&listener, &linux[0].header());
    let ours = first(&ours);
    assert_eq!(ours.body()[..72], linux[0].body()[..72]);
    let theirs = attributes(&linux[0], 72);
    for attribute in attributes(&ours, 72) {
        assert!(
            theirs.iter().any(|one| says(one, &attribute)),
            "{attribute:?} is not in {theirs:?}"
        );
    }
    let mut buffer = [0; 64];
    let mut writer = Writer::new(&mut buffer);
    let dump = Dump::new(&first(&request[0]).header(), 0);
    let nothing: [DiagSocket; 0] = [];
    assert_eq!(dump.fill(&mut writer, nothing.into_iter()), Progress::Done);
    assert_eq!(first(&buffer).bytes(), DONE);
}
