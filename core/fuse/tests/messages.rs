//! Messages as Linux's header has them, and as hostile servers write them.

use fuse::{
    Call, Caller, Client, Forget, ROOT, Reply, ReplyError, Request, SetAttributes, SetTime,
    SubmitError, Time, What,
};

const ROOM: usize = 8192;

const CALLER: Caller = Caller {
    uid: 1,
    gid: 2,
    pid: 3,
};

fn call(request: Request<'_>) -> Call<'_> {
    Call {
        node: ROOT,
        caller: CALLER,
        request,
    }
}

/// The body of a request, after a header of the first request of a client.
fn body(opcode: u32, request: Request<'_>) -> Vec<u8> {
    let mut bytes = [0; ROOM];
    let (_, len) = Client::new(1).begin(&call(request), &mut bytes).unwrap();
    let mut header = (len as u32).to_le_bytes().to_vec();
    header.extend(opcode.to_le_bytes());
    header.extend(2u64.to_le_bytes());
    header.extend(ROOT.to_le_bytes());
    header.extend([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[..40], header);
    bytes[40..len].to_vec()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn reply(error: i32, unique: u64, body: &[u8]) -> Vec<u8> {
    let mut reply = (16 + body.len() as u32).to_le_bytes().to_vec();
    reply.extend(error.to_le_bytes());
    reply.extend(unique.to_le_bytes());
    reply.extend(body);
    reply
}

/// What a client makes of `answer` to its first request.
fn answered<T>(
    request: Request<'_>,
    answer: &[u8],
    look: impl FnOnce(Result<Reply<'_>, ReplyError>) -> T,
) -> T {
    let mut client = Client::new(1);
    let (tag, _) = client.begin(&call(request), &mut [0; ROOM]).unwrap();
    let seen = look(client.finish(tag, answer));
    assert_eq!(client.in_flight(), 0);
    seen
}

/// `struct fuse_attr` of a regular file of 5 bytes.
fn attributes() -> Vec<u8> {
    let mut bytes = Vec::new();
    for long in [77u64, 5, 8, 100, 200, 300] {
        bytes.extend(long.to_le_bytes());
    }
    bytes.extend(words(&[1, 2, 3, 0o100644, 2, 1000, 100, 0x0501, 4096, 0]));
    bytes
}

fn entry(node: u64) -> Vec<u8> {
    let mut bytes = node.to_le_bytes().to_vec();
    bytes.extend(9u64.to_le_bytes());
    bytes.extend([0xff; 24]);
    bytes.extend(attributes());
    bytes
}

#[test]
fn requests_look_as_linux_writes_them() {
    let init = body(26, Request::Init);
    assert_eq!(init[..12], words(&[7, 31, 0]));
    assert_eq!(init.len(), 16);
    assert_eq!(body(1, Request::Lookup { name: b"a" }), b"a\0");
    let rename = |flags| Request::Rename {
        name: b"a",
        to: 5,
        new_name: b"bc",
        flags,
    };
    assert_eq!(
        body(12, rename(0)),
        [&words(&[5, 0]), &b"a\0bc\0"[..]].concat()
    );
    let exchange = body(45, rename(2));
    assert_eq!(exchange, [&words(&[5, 0, 2, 0]), &b"a\0bc\0"[..]].concat());
    let write = Request::Write {
        handle: 6,
        offset: 7,
        data: b"xyz",
    };
    let header = words(&[6, 0, 7, 0, 3, 0, 0, 0, 0, 0]);
    assert_eq!(body(16, write), [&header, &b"xyz"[..]].concat());
    let read = |what| Request::Read {
        what,
        handle: 6,
        offset: 7,
        count: 8,
    };
    let header = words(&[6, 0, 7, 0, 8, 0, 0, 0, 0, 0]);
    assert_eq!(body(15, read(What::File)), header);
    assert_eq!(body(28, read(What::Directory)), header);
    let nodes = [Forget {
        node: 4,
        lookups: 2,
    }];
    let forget = body(42, Request::BatchForget { nodes: &nodes });
    assert_eq!(forget, words(&[1, 0, 4, 0, 2, 0]));
    let create = Request::Create {
        name: b"f",
        flags: 2,
        mode: 0o100600,
    };
    assert_eq!(
        body(35, create),
        [&words(&[2, 0o100600, 0, 0]), &b"f\0"[..]].concat()
    );
    let value = Request::Setxattr {
        name: b"user.a",
        value: b"v",
        flags: 1,
    };
    assert_eq!(
        body(21, value),
        [&words(&[1, 1]), &b"user.a\0v"[..]].concat()
    );
}

#[test]
fn only_what_changes_is_marked_as_valid() {
    let time = Time {
        seconds: 10,
        nanos: 11,
    };
    let set = SetAttributes {
        size: Some(5),
        gid: Some(6),
        accessed: Some(SetTime::To(time)),
        modified: Some(SetTime::Now),
        ..SetAttributes::default()
    };
    let message = body(4, Request::Setattr { set });
    let valid = 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 8;
    let halves = [0, 0, 5, 0, 0, 0, 10, 0, 0, 0, 0, 0, 11, 0, 0, 0, 0, 0, 6, 0];
    assert_eq!(message, words(&[&[valid, 0][..], &halves].concat()));
    assert_eq!(message.len(), 88);
}

#[test]
fn a_text_that_is_none_is_not_sent() {
    let long = [b'a'; 256];
    for name in [&b""[..], b"a\0b", &long] {
        let begun = Client::new(1).begin(&call(Request::Lookup { name }), &mut [0; ROOM]);
        assert_eq!(begun, Err(SubmitError::TooLarge));
    }
    let begun = Client::new(1).begin(&call(Request::Lookup { name: b"abc" }), &mut [0; 43]);
    assert_eq!(begun, Err(SubmitError::TooLarge));
}

#[test]
fn a_node_comes_with_its_attributes() {
    let made = Request::Create {
        name: b"f",
        flags: 2,
        mode: 0o644,
    };
    let answer = [entry(12), words(&[6, 0, 0, 0])].concat();
    let (entry, handle) = answered(made, &reply(0, 2, &answer), |seen| match seen {
        Ok(Reply::Created(entry, handle)) => (entry, handle),
        other => panic!("{other:?}"),
    });
    assert_eq!((entry.node, entry.generation, handle), (12, 9, 6));
    let found = entry.attributes;
    assert_eq!((found.number, found.size, found.blocks), (77, 5, 8));
    assert_eq!((found.mode, found.links), (0o100644, 2));
    assert_eq!((found.uid, found.gid, found.device), (1000, 100, 0x0501));
    let modified = Time {
        seconds: 200,
        nanos: 2,
    };
    assert_eq!(found.modified, modified);
}

#[test]
fn names_end_where_they_stop_making_sense() {
    let one = |len: u32, name: &[u8]| {
        let mut bytes = words(&[7, 0, 8, 0, len, 4]);
        bytes.extend(name);
        bytes
    };
    let names = |list: Vec<u8>| {
        let read = Request::Read {
            what: What::Directory,
            handle: 1,
            offset: 0,
            count: 4096,
        };
        answered(read, &reply(0, 2, &list), |seen| match seen {
            Ok(Reply::Directory(list)) => {
                let names = list.iter().map(|entry| entry.name.to_vec());
                names.collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        })
    };
    let two = [one(1, b"a\0\0\0\0\0\0\0"), one(2, b"bc")].concat();
    assert_eq!(names(two), [b"a".to_vec(), b"bc".to_vec()]);
    assert_eq!(names(one(9, b"a")), [] as [Vec<u8>; 0]);
    assert_eq!(names(one(u32::MAX, b"a")), [] as [Vec<u8>; 0]);
    assert_eq!(names(one(300, &[b'a'; 304])), [] as [Vec<u8>; 0]);
    assert_eq!(names(words(&[7, 0, 8])), [] as [Vec<u8>; 0]);
}

#[test]
fn a_reply_answers_its_request_and_brings_no_more_than_was_asked_for() {
    let read = Request::Read {
        what: What::File,
        handle: 1,
        offset: 0,
        count: 3,
    };
    let error = |request, answer: &[u8]| answered(request, answer, |seen| seen.err());
    assert_eq!(error(read, &reply(0, 2, b"abc")), None);
    assert_eq!(
        error(read, &reply(0, 2, b"abcd")),
        Some(ReplyError::BadBody)
    );
    let other = Some(ReplyError::WrongRequest(4));
    assert_eq!(error(read, &reply(0, 4, b"abc")), other);
    let bad = Some(ReplyError::BadError(1));
    assert_eq!(error(read, &reply(1, 2, b"")), bad);
    let bad = Some(ReplyError::BadError(-5000));
    assert_eq!(error(read, &reply(-5000, 2, b"")), bad);
    let short = Some(ReplyError::Truncated);
    assert_eq!(error(read, &reply(0, 2, b"abc")[..18]), short);
    assert_eq!(error(read, b""), short);
    let write = Request::Write {
        handle: 1,
        offset: 0,
        data: b"ab",
    };
    let many = reply(0, 2, &words(&[3, 0]));
    assert_eq!(error(write, &many), Some(ReplyError::BadBody));
    let half = reply(0, 2, &entry(3)[..100]);
    let lookup = Request::Lookup { name: b"a" };
    assert_eq!(error(lookup, &half), Some(ReplyError::BadBody));
    let missing = answered(lookup, &reply(-2, 2, b""), |seen| {
        matches!(seen, Ok(Reply::Error(2)))
    });
    assert!(missing);
}

#[test]
fn a_server_that_writes_less_than_a_page_or_speaks_something_else_is_refused() {
    let init = |major, minor, write_bytes_max| {
        let mut answer = words(&[major, minor, 0, 0, 0, write_bytes_max]);
        answer.resize(64, 0);
        answered(Request::Init, &reply(0, 2, &answer), |seen| match seen {
            Ok(Reply::Init { write_bytes_max }) => Some(write_bytes_max),
            _ => None,
        })
    };
    assert_eq!(init(7, 31, 1 << 20), Some(1 << 20));
    assert_eq!(init(7, 45, 4096), Some(4096));
    assert_eq!(init(7, 31, 4095), None);
    assert_eq!(init(6, 31, 4096), None);
    assert_eq!(init(7, 22, 4096), None);
}

#[test]
fn what_gives_nodes_up_has_no_reply_and_tags_are_used_again() {
    let mut client = Client::new(1);
    let forget = Request::BatchForget { nodes: &[] };
    assert_eq!(forget.reply_bytes(), 0);
    let (tag, _) = client.begin(&call(forget), &mut [0; ROOM]).unwrap();
    let busy = client.begin(&call(Request::Getattr), &mut [0; ROOM]);
    assert_eq!(busy, Err(SubmitError::Busy));
    assert!(matches!(client.finish(tag, b""), Ok(Reply::Done)));
    assert!(matches!(client.finish(tag, b""), Err(ReplyError::NotAsked)));
    let (tag, _) = client
        .begin(&call(Request::Getattr), &mut [0; ROOM])
        .unwrap();
    // No number is used twice: an answer to the one before is none.
    let old = reply(0, 2, &[0; 104]);
    let old = client.finish(tag, &old);
    assert!(matches!(old, Err(ReplyError::WrongRequest(2))));
}
